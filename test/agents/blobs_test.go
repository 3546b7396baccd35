package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// ordinary is the user of an unprivileged kernel if the test runs as root.
const ordinary = 61_234

// users returns the users that a kernel is tested as.
func users() map[string]int {
	if os.Getuid() != 0 {
		return map[string]int{"unprivileged": os.Getuid()}
	}
	return map[string]int{"root": 0, "unprivileged": ordinary}
}

// startAs runs a daemon of a user at a new place, with further settings. It returns the program that it runs.
func startAs(t *testing.T, uid int, settings string) (p *place, program string) {
	t.Helper()
	p = &place{testkit.NewPlace(t, settings)}
	program = p.Path("program")
	binary, err := os.ReadFile(self(t))
	testkit.Must(t, err)
	testkit.WriteProgram(t, program, binary)
	d := testkit.Daemon{Command: []string{program}, Dir: p.Dir, Env: testkernel.Self(t).Env}
	if uid != os.Getuid() {
		d.As = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		for _, path := range []string{p.Dir, program, p.Path("config.toml")} {
			testkit.Must(t, os.Chown(path, uid, uid))
		}
	}
	p.Start(t, d)
	return p, program
}

// TestHoard: an agent that fills the blob directory that it sees fills its own part only. It refers to its own files, finds
// the kernel's, and its files go with it; the kernel's directory has room for the operator meanwhile.
func TestHoard(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("programs have file systems of their own on Linux only")
	}
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 1 << 20
			p, program := startAs(t, uid, settings+fmt.Sprintf("[blobs]\nagent_bytes = %d\n", most))
			c := p.dial(t)
			blobs := filepath.Join(p.RuntimeDir(), "blobs")
			var out struct {
				ChildPID int64 `json:"child_pid"`
			}
			c.must(t, "command", "Syscall.Spawn", fmt.Sprintf(
				`{"child_agent_id":"hoard","command":[%q,"hoard",%q],"capabilities":{"allowed_syscalls":["Memory.*"]}}`, program, blobs), &out)
			var found struct {
				Own, Given bool
				Bytes      int64
				Why        string
			}
			testkit.Must(t, json.Unmarshal([]byte(c.awaitKey(t, "hoard/found")), &found))
			if !found.Own || !found.Given {
				t.Errorf("the agent's reference was read: %v, the agent has read the kernel's: %v", found.Own, found.Given)
			}
			if found.Bytes > most || found.Bytes < most/4 || found.Why != syscall.ENOSPC.Error() {
				t.Errorf("the agent wrote %d bytes, then %q; want at most %d, then no space", found.Bytes, found.Why, most)
			}
			kept := 0
			testkit.Must(t, filepath.WalkDir(blobs, func(_ string, _ os.DirEntry, err error) error { kept++; return err }))
			if kept > 2 {
				t.Errorf("%d files are in the kernel's directory, want it and what the kernel has written", kept)
			}
			testkit.Must(t, os.WriteFile(filepath.Join(blobs, "operators"), []byte(`"fits"`), 0o600))
			testkit.Must(t, os.Chown(filepath.Join(blobs, "operators"), uid, uid))
			c.must(t, "command", "Memory.Set", fmt.Sprintf(`{"key":"operators","valueRef":{"scheme":"file","path":%q}}`, filepath.Join(blobs, "operators")), nil)
		})
	}
}

// hoard is the agent of TestHoard.
func hoard(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	own := filepath.Join(args[0], "own")
	text := `"` + strings.Repeat("x", 100_000) + `"`
	err = os.WriteFile(own, []byte(text), 0o600)
	if err == nil {
		_, err = c.call("command", "Memory.Set", fmt.Sprintf(`{"key":"hoard/own","valueRef":{"scheme":"file","path":%q}}`, own))
	}
	if err != nil {
		return failed(err)
	}
	var got struct {
		ValueRef struct{ Path string } `json:"valueRef"`
	}
	reply, err := c.call("query", "Memory.Get", `{"key":"hoard/own"}`)
	if err == nil {
		err = json.Unmarshal(reply.Data, &got)
	}
	if err != nil {
		return failed(err)
	}
	given, _ := os.ReadFile(got.ValueRef.Path)
	found := map[string]any{"Own": true, "Given": strings.Trim(string(given), `"`) == strings.Trim(text, `"`)}
	var written int64
	for n := 0; ; n++ {
		err := os.WriteFile(filepath.Join(args[0], fmt.Sprint("hoard-", n)), make([]byte, 64<<10), 0o600)
		var errno syscall.Errno
		if errors.As(err, &errno) || written > 8<<20 {
			found["Bytes"], found["Why"] = written, errno.Error()
			break
		}
		written += 64 << 10
	}
	if err := c.note("hoard/found", found); err != nil {
		return failed(err)
	}
	_, _ = c.next() // until the kernel ends
	return 0
}

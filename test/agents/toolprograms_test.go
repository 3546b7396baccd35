package agents_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestProgramsAreStopped: a program, if the configuration allows programs, runs as its caller and ends within the limits,
// with what it has started. The files of a call in its directory are removed, also after a kill of the kernel.
func TestProgramsAreStopped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("programs are hosted only on Linux")
	}
	p := newTree(t, unhurried+"programs = true\noutput_bytes = 1000000\n", nil)
	for name, body := range map[string]string{
		"who":   `printf '["%s","%s"]' "$PWOS_PID" "$PWOS_AGENT_ID"`,
		"flood": `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`,
		"fail":  `echo oops >&2; exit 3`,
		"leave": `mkdir -p a/b; echo x > a/b/c; chmod 0 a; echo 1`,
	} {
		p.program(t, name, body)
	}
	d := p.start(t)
	c := p.dial(t)
	call := func(name string) string { return fmt.Sprintf(`{"syscall":"os/%s"}`, name) }
	pid := c.agent("")
	if got := c.call("Syscall.Call", fmt.Sprintf(`{"syscall":"os/who","pid":%d}`, pid)); got != fmt.Sprintf(`["%d","a0"]`, pid) {
		t.Errorf("the program ran as %s", got)
	}
	c.refused(502, "1000000", "Syscall.Call", call("flood"))
	c.refused(502, "the tool failed", "Syscall.Call", call("fail"))
	c.call("Syscall.Call", call("leave"))
	scratch := func() []os.DirEntry {
		t.Helper()
		left, err := os.ReadDir(p.Path("s/scratch"))
		testkit.Must(t, err)
		return left
	}
	if left := scratch(); len(left) > 0 {
		t.Errorf("the calls have left %v", left)
	}
	testkit.Must(t, os.MkdirAll(p.Path("s/scratch/call-1/a"), 0o700))
	testkit.Must(t, os.Chmod(p.Path("s/scratch/call-1/a"), 0))
	d.End(t, syscall.SIGKILL)
	p.start(t)
	p.dial(t) // it is answered when the kernel runs
	if left := scratch(); len(left) > 0 {
		t.Errorf("the kernel before has left %v", left)
	}
	output, err := os.ReadFile(p.Path("output"))
	testkit.Must(t, err)
	if !strings.Contains(string(output), "oops") {
		t.Error("the error output of a failed tool is not in the log")
	}

	hurried := newTree(t, "[tools]\nprograms = true\ntime = \"2s\"\n", nil)
	hurried.program(t, "spin", `while :; do :; done`)
	hurried.program(t, "child", `sleep 1000 & sleep 1000`)
	hurried.start(t)
	c = hurried.dial(t)
	c.refused(504, "2s", "Syscall.Call", call("spin"))
	c.refused(504, "2s", "Syscall.Call", call("child"))
}

// program writes a shell script to an executable file of the place's root.
func (p tree) program(t *testing.T, name, body string) {
	t.Helper()
	p.put(t, name, "#!/bin/sh\n"+body+"\n")
	testkit.Must(t, os.Chmod(p.Path("root/"+name), 0o700))
}

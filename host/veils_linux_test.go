package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestVeils: what hides names from programs is made once for all of them, without privileges and as root, is not used once a part of it is
// missing, and is removed with the host.
func TestVeils(t *testing.T) {
	t.Parallel()
	users := []int{os.Geteuid()}
	if users[0] == 0 {
		users = append(users, 65534)
	}
	for _, user := range users {
		t.Run(fmt.Sprint(user), func(t *testing.T) {
			t.Parallel()
			above := shared(t)
			home := filepath.Join(above, "home")
			paths := []string{plant(t, home, ".netrc"), plant(t, home, ".ssh/id_rsa"), plant(t, home, "notes.txt")}
			testkit.Must(t, os.Mkdir(filepath.Join(above, "work"), 0o700))
			testkit.Must(t, os.WriteFile(filepath.Join(above, "work", "paths"), []byte(strings.Join(paths, "\n")), 0o600))
			testkit.Must(t, filepath.WalkDir(above, func(path string, _ os.DirEntry, err error) error {
				return errors.Join(err, os.Chown(path, user, user))
			}))
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "t-veils", above)
			cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			notes := paths[2] + " public\n"
			if want := "made:\n" + notes + "used, with another name:\n" + "incomplete:\n" + notes; string(text) != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
			if left, err := os.ReadDir(filepath.Join(above, "veils")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// veilsOf runs agents that read the planted files, with veils as they are made, with one name changed, and without it.
func veilsOf(args []string) int {
	veils := filepath.Join(args[0], "veils")
	h, err := host.New(host.Options{Veils: veils})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer h.Close(context.Background(), 0)
	run := func(what string) error {
		fmt.Println(what)
		p, err := h.Start(context.Background(), host.Command{
			Argv: []string{"/proc/self/exe", "t-read-all"}, Dir: filepath.Join(args[0], "work"), PID: 7, Sandbox: host.SandboxDefault,
		})
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, p.Conn())
		<-p.Done()
		return errors.Join(err, p.Conn().Close())
	}
	err = run("made:")
	made, globErr := filepath.Glob(veils + "/*/.vault-token") // in each home: that of a variable, and that of the user
	for _, path := range made {
		err = errors.Join(err, os.Rename(path, filepath.Join(filepath.Dir(path), "notes.txt")))
	}
	err = errors.Join(err, globErr, run("used, with another name:"))
	for _, path := range made {
		err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), "notes.txt")))
	}
	if err = errors.Join(err, run("incomplete:")); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

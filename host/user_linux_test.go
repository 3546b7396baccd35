package host_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestUser: a host that runs as user 0 runs a program as the user that its command names, beside programs of others. The program owns
// its directory, and is identified.
func TestUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h := open(t)
	start(t, h, shell(t, "read x"))
	for _, number := range []int{65534, 54321} { // no user has the second number
		for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxOff} {
			c := shell(t, `id -u; id -G; echo x >file && echo wrote; echo >/dev/stdout reopened; grep CapEff /proc/self/status; read x`)
			c.Sandbox, c.User = mode, &osuser.User{UID: number, GID: number}
			testkit.Must(t, os.Chown(c.Dir, number, number))
			testkit.Must(t, os.Chmod(filepath.Dir(c.Dir), 0o755))
			p := start(t, h, c)
			for _, line := range []string{strconv.Itoa(number), strconv.Itoa(number), "wrote", "reopened", "CapEff:\t0000000000000000"} {
				readLine(t, p, line)
			}
			if owner, err := h.Owner(p.OSPID()); owner != p || err != nil {
				t.Errorf("%d, %s: its owner is %v, %v", number, mode, owner, err)
			}
			if !h.RunsAs(number) {
				t.Errorf("no program runs as user %d", number)
			}
			testkit.Must(t, p.Terminate(t.Context(), 0))
			<-p.Done()
			if h.RunsAs(number) {
				t.Errorf("a program runs as user %d after its end", number)
			}
		}
	}
}

// TestHomesOfUser: a program that runs as another user reads that user's home except for secrets, and none of this process's. USER and
// LOGNAME are that user's.
func TestHomesOfUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h := open(t)
	strict(t, h)
	const number = 54321
	home := shared(t)
	own, err := os.UserHomeDir()
	testkit.Must(t, err)
	mine, err := os.MkdirTemp(own, "pwos-test-")
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, os.RemoveAll(mine)) })
	for _, dir := range []string{filepath.Join(home, ".ssh"), filepath.Join(home, "notes"), mine} {
		testkit.Must(t, os.MkdirAll(dir, 0o755))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644))
		testkit.Must(t, os.Chown(dir, number, number))
	}
	testkit.Must(t, os.Chmod(home, 0o755))
	c := shell(t, `test -r "$1/notes/file" && echo notes; test -e "$1/.ssh/file" || echo no secret; test -e "$2" || echo not ours; echo $USER $LOGNAME`, home, mine)
	c.User = &osuser.User{UID: number, GID: number, Name: "someone", Home: home}
	testkit.Must(t, os.Chown(c.Dir, number, number))
	if got, want := output(t, h, c), "notes\nno secret\nnot ours\nsomeone someone\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

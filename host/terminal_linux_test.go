package host_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// pair opens a pseudo-terminal until the test ends, and returns our end and the path of the other.
func pair(t *testing.T) (ours *os.File, path string) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal is available: %v", err)
	}
	t.Cleanup(func() { testkit.Must(t, ours.Close()) })
	testkit.Must(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	return ours, "/dev/pts/" + strconv.Itoa(n)
}

// TestTerminal: a confined program has the terminal as its controlling terminal.
func TestTerminal(t *testing.T) {
	t.Parallel()
	ours, path := pair(t)
	c := shell(t, `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "open $(ps -o tty= -p $$) $PWOS_FD" >/dev/tty; exit 5`)
	c.TTY = path
	p := start(t, open(t), c)
	if exit := wait(t, p); exit.Code != 5 || p.Channel() != host.ChannelFD3 {
		t.Errorf("%v, channel %s", exit, p.Channel())
	}
	said, err := io.ReadAll(ours)
	if want := "open " + strings.TrimPrefix(path, "/dev/") + " 3\r\n"; string(said) != want || !errors.Is(err, syscall.EIO) {
		t.Errorf("it shows %q, %v, want %q", said, err, want)
	}
}

// TestTerminalRefused: other files than pseudo-terminals are not opened, and the terminal of another session is not taken,
// not even by user 0.
func TestTerminalRefused(t *testing.T) {
	t.Parallel()
	_, taken := pair(t)
	theirs, err := os.OpenFile(taken, os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	owner := exec.Command("/bin/cat")
	owner.Stdin = theirs
	owner.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, owner.Start())
	t.Cleanup(func() {
		testkit.Must(t, theirs.Close())
		_ = owner.Process.Kill()
		_ = owner.Wait()
	})
	link := filepath.Join(t.TempDir(), "link")
	testkit.Must(t, os.Symlink(taken, link))
	h := open(t)
	for path, stage := range map[string]string{taken: "terminal", link: "fork", os.DevNull: "fork", "/dev/ptmx": "fork", "/no/such": "fork"} {
		c := shell(t, "exit 0")
		c.TTY = path
		_, err := h.Start(t.Context(), c)
		if failed, ok := errors.AsType[*host.StartError](err); !ok || failed.Stage != stage {
			t.Errorf("%s: %v", path, err)
		}
	}
}

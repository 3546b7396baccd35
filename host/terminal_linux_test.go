package host_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
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
	c := shell(t, `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "open $PWOS_FD" >/dev/tty; exit 5`)
	theirs := terminal(t, path)
	c.Stdio = handsOver(t, theirs, theirs, theirs)
	p := start(t, open(t), c)
	if exit := wait(t, p); exit.Code != 5 || p.Channel() != host.ChannelFD3 {
		t.Errorf("%v, channel %s", exit, p.Channel())
	}
	testkit.Must(t, theirs.Close())
	said, err := io.ReadAll(ours)
	if want := "open 3\r\n"; string(said) != want || !errors.Is(err, syscall.EIO) {
		t.Errorf("it shows %q, %v, want %q", said, err, want)
	}
}

// TestTerminalRefused: the terminal of another session is not taken, not even by user 0, nor a second one.
func TestTerminalRefused(t *testing.T) {
	t.Parallel()
	_, taken := pair(t)
	theirs := terminal(t, taken)
	owner := exec.Command("/bin/cat")
	owner.Stdin = theirs
	owner.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, owner.Start())
	t.Cleanup(func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	})
	null := null(t)
	_, first := pair(t)
	_, second := pair(t)
	h := open(t)
	for name, files := range map[string][]*os.File{
		"taken": {theirs, theirs, theirs}, "taken, as error": {null, null, theirs}, "two": {terminal(t, first), null, terminal(t, second)},
	} {
		c := shell(t, "exit 0")
		c.Stdio = handsOver(t, files...)
		_, err := h.Start(t.Context(), c)
		if failed, ok := errors.AsType[*host.StartError](err); !ok || failed.Stage != "terminal" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// terminal opens the program's end of a pseudo-terminal until the test ends.
func terminal(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

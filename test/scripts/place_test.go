package scripts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
)

// place is a testkit.Place with the home of a user, whose pwos starts the kernel.
type place struct{ *testkit.Place }

func newPlace() (place, error) {
	if err := lookAtSources(); err != nil {
		return place{}, err
	}
	dir, err := os.MkdirTemp("", "ps")
	return place{&testkit.Place{Dir: dir}}, err
}

// env is the whole environment of a program that lives here.
func (p place) env() []string {
	return append([]string{
		"GORACE=atexit_sleep_ms=10", // each process would else sleep for a second before it ends
		"HOME=" + p.Path("home"),
		"PATH=" + os.Getenv(binDirEnv) + ":" + os.Getenv("PATH"),
		"PWOS_RUNTIME_DIR=" + p.RuntimeDir(),
		"TERM=xterm",
		"TMPDIR=" + p.Dir,
	}, ciMark()...)
}

// ciMark hands on what .ci/run recognises the processes of a step by.
func ciMark() []string {
	if mark, ok := os.LookupEnv("PWOS_CI_MARK"); ok {
		return []string{"PWOS_CI_MARK=" + mark}
	}
	return nil
}

// leave removes the place. A kernel that still runs there is an error, and ended; so is one that has logged what must not
// happen.
func (p place) leave() error {
	err := p.kill()
	if errors.Is(err, errNoKernel) {
		err = nil
	} else if err == nil {
		err = errors.New("a kernel was left running")
	}
	log, logErr := os.ReadFile(filepath.Join(p.RuntimeDir(), "kernel.log"))
	if logErr != nil && !errors.Is(logErr, fs.ErrNotExist) {
		err = errors.Join(err, logErr)
	}
	for _, bad := range []string{"DATA RACE", "panic", "goroutine "} {
		if bytes.Contains(log, []byte(bad)) {
			err = errors.Join(err, fmt.Errorf("the kernel's log has %q:\n%s", bad, log))
		}
	}
	return errors.Join(err, os.RemoveAll(p.Dir))
}

var errNoKernel = errors.New("no kernel runs here")

// kill ends the kernel that runs here with SIGKILL, and waits until it has ended. It returns errNoKernel where none runs.
func (p place) kill() error {
	lock, err := os.Open(filepath.Join(p.RuntimeDir(), "kernel.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return errNoKernel
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	fd := int(lock.Fd())
	if err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return errNoKernel
	}
	text, err := os.ReadFile(lock.Name())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read kernel.lock: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill kernel %d: %w", pid, err)
	}
	for { // its end gives the lock back
		if err := unix.Flock(fd, unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// settle makes a place for a test and checks at its end that nothing runs there any more.
func settle(t *testing.T) place {
	t.Helper()
	p, err := newPlace()
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.leave()) })
	return p
}

// command is pwos here, with patience.
func (p place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program("pwos"), append([]string{"--timeout=" + testkit.Patience.String()}, args...)...)
	cmd.Env = p.env()
	cmd.Dir = p.Dir
	return cmd
}

// pwos runs pwos here, which must exit with 0, and returns what it wrote to stdout.
func (p place) pwos(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := p.command(t.Context(), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("pwos %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

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

// place is a testkit.Place with a user's home directory, whose pwos starts the kernel.
type place struct{ *testkit.Place }

// newPlace makes one in a directory, "" for that of temporary files.
func newPlace(in string) (place, error) {
	if err := testkit.LookAtSources(); err != nil { // as nothing is recorded before tests run
		return place{}, err
	}
	dir, err := os.MkdirTemp(in, "ps")
	return place{&testkit.Place{Dir: dir}}, err
}

// env returns the whole environment of a program in this place.
func (p place) env() []string {
	return append([]string{
		"GORACE=atexit_sleep_ms=10", // otherwise each process would sleep for a second before it ends
		"HOME=" + p.Path("home"),
		"PATH=" + os.Getenv(binDirEnv) + ":" + os.Getenv("PATH"),
		"PWOS_RUNTIME_DIR=" + p.RuntimeDir(),
		"TERM=xterm",
		"TMPDIR=" + p.Dir,
	}, ciMark()...)
}

// ciMark passes on the variable by which .ci/run recognizes the processes of a step.
func ciMark() []string {
	if mark, ok := os.LookupEnv("PWOS_CI_MARK"); ok {
		return []string{"PWOS_CI_MARK=" + mark}
	}
	return nil
}

// leave removes the place. It returns an error for a kernel that still runs there, or with a runtime directory below one of
// more, and ends it; and for one that has logged an unexpected error.
func (p place) leave(more ...string) error {
	dirs := []string{p.RuntimeDir()}
	var err error
	for _, dir := range more {
		below, walkErr := runtimeDirs(dir)
		dirs, err = append(dirs, below...), errors.Join(err, walkErr)
	}
	for _, dir := range dirs {
		err = errors.Join(err, leaveKernel(dir))
	}
	return errors.Join(err, os.RemoveAll(p.Dir))
}

// runtimeDirs returns the runtime directories of kernels below a directory, since a script has several kernels in its work
// directory.
func runtimeDirs(dir string) (list []string, _ error) {
	return list, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err == nil && entry.Name() == "kernel.lock" {
			list = append(list, filepath.Dir(path))
		}
		return err
	})
}

// leaveKernel returns an error if a kernel runs in a runtime directory, which it ends, or has logged an unexpected error.
func leaveKernel(runtimeDir string) error {
	err := killIn(runtimeDir)
	if errors.Is(err, errNoKernel) {
		err = nil
	} else if err == nil {
		err = fmt.Errorf("a kernel was left running in %s", runtimeDir)
	}
	log, logErr := os.ReadFile(filepath.Join(runtimeDir, "kernel.log"))
	if logErr != nil && !errors.Is(logErr, fs.ErrNotExist) {
		err = errors.Join(err, logErr)
	}
	for _, bad := range []string{"DATA RACE", "panic", "goroutine "} {
		if bytes.Contains(log, []byte(bad)) {
			err = errors.Join(err, fmt.Errorf("the kernel's log has %q:\n%s", bad, log))
		}
	}
	return err
}

var errNoKernel = errors.New("no kernel runs here")

// kill ends the kernel that runs here with SIGKILL, and waits until it has ended. It returns errNoKernel if none runs.
func (p place) kill() error { return killIn(p.RuntimeDir()) }

// killIn is kill for the kernel of a runtime directory.
func killIn(runtimeDir string) error {
	lock, err := os.Open(filepath.Join(runtimeDir, "kernel.lock"))
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
	for { // its end releases the lock
		if err := unix.Flock(fd, unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// settle creates a place for a test and checks at its end that nothing runs there any more.
func settle(t *testing.T) place {
	t.Helper()
	p, err := newPlace("")
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.leave()) })
	return p
}

// command returns a pwos command here, with patience.
func (p place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program("pwos"), append([]string{"--timeout=" + testkit.Patience.String()}, args...)...)
	cmd.Env = p.env()
	cmd.Dir = p.Dir
	return cmd
}

// statusOf returns an exit status as a shell has it: 128+N for the signal N.
func statusOf(ended *os.ProcessState) int {
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

// pwos runs pwos here, which must exit with 0, and returns its stdout.
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

// A kernel that a script leaves running is ended in any runtime directory, so a script that fails leaves none.
func TestLeave(t *testing.T) {
	t.Parallel()
	p, err := newPlace("")
	testkit.Must(t, err)
	work := t.TempDir()
	runtimeDir := filepath.Join(work, "two", "run")
	cmd := p.command(t.Context(), "call", "Syscall.Echo", "message=up")
	cmd.Env = append(cmd.Env, "PWOS_RUNTIME_DIR="+runtimeDir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := p.leave(work); err == nil || !strings.Contains(err.Error(), "a kernel was left running in "+runtimeDir) {
		t.Errorf("the end of a kernel below the work directory: %v", err)
	}
	if err := killIn(runtimeDir); !errors.Is(err, errNoKernel) {
		t.Errorf("the kernel still runs: %v", err)
	}
}

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// asBench makes the test binary the program.
const asBench = "be-the-bench"

func TestMain(m *testing.M) {
	daemon.Shim()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asBench:
			os.Exit(start(os.Args[2:]))
		case asKernel, asEcho:
			os.Exit(start(os.Args[1:]))
		}
	}
	testkernel.Main(m)
}

// program returns the program with these arguments, whose files are in dir.
func program(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Value(os.Executable())(t), append([]string{asBench}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	return cmd
}

// Its own kernel is measured with the load of each row, and leaves nothing.
func TestOwnKernel(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	cmd := program(t, dir, "-duration", "20ms", "-rounds", "2")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if rows := regexp.MustCompile(`(?m)^ *(ping|set|get)-x?\d+ +[1-9]\d* +[1-9]\d* +\d+\.\d\d +\d.*s +\d.*s +\d.*s +\d.*s$`).FindAll(out, -1); len(rows) != 8 {
		t.Errorf("%d rows, want 8:\n%s", len(rows), out)
	}
	nothing(t, dir)
}

// A running kernel is measured as its clients see it: the calls are in its journal.
func TestRunningKernel(t *testing.T) {
	t.Parallel()
	place := testkit.NewPlace(t, "")
	testkernel.Start(t, testkernel.Settings(place))
	dir := testkit.Dir(t)
	out, err := program(t, dir, "-running", place.RuntimeDir(), "-duration", "20ms", "-rounds", "1", "-only", "set-1").CombinedOutput()
	if err != nil || bytes.Count(out, []byte("\n")) != 2 {
		t.Fatalf("%v, want a header and a row\n%s", err, out)
	}
	if journal := place.Journal(t); !strings.Contains(journal, `"Memory.Set"`) {
		t.Errorf("no Memory.Set in the kernel's journal:\n%.2000s", journal)
	}
	nothing(t, dir)
}

// A signal ends a measurement; its processes and files are removed.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			cmd := program(t, dir, "-only", "ping-1", "-duration", "5m", "-rounds", "1")
			testkit.Must(t, cmd.Start())
			await(t, filepath.Join(dir, "pwos-echo-*", "echo.sock"))
			lock := testkit.ReadFile(t, await(t, filepath.Join(dir, "pwos-bench-*", "run", "kernel.lock")))
			kernel := testkit.Value(os.FindProcess(testkit.Value(strconv.Atoi(strings.TrimSpace(lock)))(t)))(t)
			testkit.Must(t, cmd.Process.Signal(signal))
			_ = cmd.Wait() // only the status matters
			if status := cmd.ProcessState.ExitCode(); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			if err := kernel.Signal(syscall.Signal(0)); err == nil {
				t.Error("the kernel of the measurement still runs")
			}
			nothing(t, dir)
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"-only nonsense", "ping-16"},
		{"-rounds 0", "greater than 0"},
		{"-duration -1s", "greater than 0"},
		{"ping-1", "unexpected argument"},
		{"-help", "go run ./test/bench"},
	} {
		var said strings.Builder
		if _, err := parse(strings.Fields(c.args), &said); err == nil || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: error %v, said %q, want %q", c.args, err, said.String(), c.want)
		}
	}
	if status := start([]string{"-no-such-flag"}); status != 2 {
		t.Errorf("exit status %d, want 2", status)
	}
	if err := (&measurement{running: testkit.Dir(t)}).run(t.Context(), io.Discard); err == nil {
		t.Error("no error where no kernel runs")
	}
}

// await waits for a file, and returns its path.
func await(t *testing.T, pattern string) string {
	t.Helper()
	for limit := time.Now().Add(testkit.Patience); time.Now().Before(limit); <-time.After(time.Millisecond) {
		if found := testkit.Value(filepath.Glob(pattern))(t); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("there is no %s", pattern)
	return ""
}

// nothing checks that a program has left no file in its temporary directory.
func nothing(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	testkit.Must(t, err)
	if len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

package scripts_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/promptware-os/pwos/internal/interpreters"
	"github.com/promptware-os/pwos/internal/testkit"
)

// Each script in this directory is a test. It has a separate place, and must leave no kernel running. In addition to
// testscript's commands there are:
//
//	pwos ARGS...            run pwos, which must exit with 0
//	exits N ARGS...         run pwos, which must exit with N
//	terminal N ARGS...      the same with a terminal for stdin and stdout; `stdout` matches what it showed
//	lines N                 the last command wrote N lines to stdout
//	kill-kernel             end the kernel with SIGKILL
//	bus FILE                run pwos-bus with this file of members; $BUS is its address, which a restart keeps, $BUSBIN the directory of its program
//	stop-bus                end that bus
//	await-kernel            wait until a kernel that the script has started listens
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		WorkdirRoot:         testkit.Dir(t), // testscript removes a root of its own only if all scripts have run
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setUp(t, env) },
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"pwos": func(ts *testscript.TestScript, neg bool, args []string) {
				runPwos(ts, neg, append([]string{"0"}, args...))
			},
			"exits":        runPwos,
			"terminal":     runAtTerminal,
			"lines":        countLines,
			"bus":          func(ts *testscript.TestScript, neg bool, args []string) { runBus(t, ts, neg, args) },
			"stop-bus":     stopBus,
			"kill-kernel":  killKernel,
			"await-kernel": awaitKernel,
		},
	})
}

// placeKey is the context key of a script's place.
type placeKey struct{}

func setUp(t *testing.T, env *testscript.Env) error {
	in := ""
	if filepath.Base(env.WorkDir) == "script-diskfull" {
		in = testkit.DiskTempDir() // in memory, a limit on the size of a file also bounds the space that is reserved for it
	}
	p, err := newPlace(in)
	if err != nil {
		return err
	}
	env.Values[placeKey{}], env.Values[busKey{}] = p, new(scriptBus)
	env.Vars = append(env.Vars, p.env()...)
	for _, dir := range filepath.SplitList(env.Getenv("PATH")) { // for agents, which cannot see /tmp
		if _, err := os.Stat(filepath.Join(dir, "pwos")); err == nil {
			env.Setenv("BIN", dir)
			break
		}
	}
	examples, err := examplesDir()
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars, "EXAMPLES="+examples, "BIN="+os.Getenv(binDirEnv))
	if path, err := node(); err == nil {
		env.Setenv("NODE", path)
	}
	env.Defer(func() {
		if err := p.leave(env.WorkDir); err != nil {
			t.Errorf("%s: %v", filepath.Base(env.WorkDir), err)
		}
	})
	return nil
}

// examplesDir returns the directory of the examples, whose files have all been read: see testkit.LookAtSources.
func examplesDir() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		return "", err
	}
	return dir, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			_, err = os.ReadFile(path)
		}
		return err
	})
}

func placeOf(ts *testscript.TestScript) place { return ts.Value(placeKey{}).(place) }

// condition evaluates [linux] and the like; [confines]: programs can be prevented from writing outside their directory;
// [reflinks]: files can share blocks; [python] and [node]: one is installed that generated clients run on.
func condition(name string) (bool, error) {
	switch name {
	case "confines":
		return confines(), nil
	case "root":
		return os.Geteuid() == 0, nil
	case "python":
		_, err := python()
		return err == nil, nil
	case "reflinks":
		return reflinks()
	case "node":
		_, err := node()
		return err == nil, nil
	case "linux", "darwin":
		return name == runtime.GOOS, nil
	}
	return false, fmt.Errorf("unknown condition %s", name)
}

// reflinks reports whether the file system of the scripts' directories supports shared blocks.
func reflinks() (bool, error) {
	dir, err := os.MkdirTemp("", "pw")
	if err != nil {
		return false, err
	}
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	err = os.WriteFile(from, []byte("text"), 0o600)
	shared := exec.Command("cp", "--reflink=always", from, to).Run() == nil
	return shared, errors.Join(err, os.RemoveAll(dir))
}

var (
	python = sync.OnceValues(interpreters.Python)
	node   = sync.OnceValues(interpreters.Node)
)

// expected splits the exit status off args.
func expected(ts *testscript.TestScript, neg bool, args []string) (want int, rest []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: exits N ARGS..., without !")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	return want, append([]string{"--timeout=" + testkit.Patience.String()}, args[1:]...)
}

func runPwos(ts *testscript.TestScript, neg bool, args []string) {
	want, rest := expected(ts, neg, args)
	checkStatus(ts, ts.Exec("pwos", rest...), want)
}

func checkStatus(ts *testscript.TestScript, err error, want int) {
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = statusOf(exit.ProcessState)
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lines N")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := strings.Count(ts.ReadFile("stdout"), "\n"); got != want {
		ts.Fatalf("%d lines, want %d", got, want)
	}
}

func awaitKernel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: await-kernel")
	}
	socket := placeOf(ts).Socket()
	for limit := time.Now().Add(testkit.Patience); ; <-time.After(time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			ts.Check(conn.Close())
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("no kernel listens: %v", err)
		}
	}
}

func killKernel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: kill-kernel")
	}
	ts.Check(placeOf(ts).kill())
}

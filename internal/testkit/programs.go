package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// programs are the paths of the programs that this process has built.
var programs struct {
	sync.Mutex
	dir  string
	made map[string]error
}

// Program returns the path of one of the programs of cmd/. It is built once, without the race detector, which would distort
// measurements of memory and time. Main removes it.
func Program(t testing.TB, name string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		programs.dir, programs.made = Value(os.MkdirTemp("", "pwb"))(t), make(map[string]error)
		Must(t, os.Chmod(programs.dir, 0o755))
	}
	err, made := programs.made[name]
	if !made {
		err = Build(programs.dir, nil, "github.com/promptware-os/pwos/cmd/"+name)
		programs.made[name] = err
	}
	Must(t, err)
	return filepath.Join(programs.dir, name)
}

// WriteProgram writes a program to be executed by this user and others. Another process writes it: of this one, a child that was forked
// meanwhile for another test has the file open until it executes its own program, and what is open for writing cannot be executed.
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 755 "$0"`, path)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v\n%s", path, err, out)
	}
}

// Build copies the programs of these packages, built with flags, into dir. The go command caches them, and links one only
// if a source has changed.
func Build(dir string, flags []string, packages ...string) error {
	for _, pkg := range packages {
		args := slices.Concat([]string{"run", "-exec", "cp"}, flags, []string{pkg, dir})
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return LookAtSources()
}

// LookAtSources reads the directories of this module that programs may be built from: all but those of tests. "go test" reruns a
// cached test if a file that the test has read changes, but it does not see files that the go command reads for the test. The go
// command would list them to the point, in more time than it takes to find a cached program.
func LookAtSources() error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(root)
		if up == root {
			return errors.New("no go.mod above the working directory")
		}
		root = up
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (name == "test" || name == "testdata" || name == ".git") {
			return fs.SkipDir
		}
		return nil
	})
}

// RaceDetector reports whether this test was built with -race, which multiplies its memory and its time.
func RaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func removePrograms() error {
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		return nil
	}
	return os.RemoveAll(programs.dir)
}

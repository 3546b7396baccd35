package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// programs are those that Program has built in this process.
var programs struct {
	sync.Mutex
	dir  string
	made map[string]error
}

// Program returns the path of one of the programs of cmd/, which is built once, without the race detector, whose memory and time would be
// measured too. Main removes it.
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
		err = build(programs.dir, "github.com/promptware-os/pwos/cmd/"+name)
		programs.made[name] = err
	}
	Must(t, err)
	return filepath.Join(programs.dir, name)
}

// build has the go command copy the program that it would run: it keeps that one in its cache, and links it only if a source changed.
func build(dir, path string) error {
	if out, err := exec.Command("go", "run", "-exec", "cp", path, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", path, err, out)
	}
	list, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", path).Output()
	if err != nil {
		return fmt.Errorf("list sources of %s: %w", path, err)
	}
	return LookAt(strings.Fields(string(list)))
}

// RaceDetector reports whether this test was built with -race. Its memory and its time are several times as much.
func RaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// LookAt reads directories. "go test" remembers what a test has looked at and runs it again when that changes; of what the go command reads
// on its behalf it would not know, and call a stale result cached.
func LookAt(dirs []string) error {
	for _, dir := range dirs {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func removePrograms() error {
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		return nil
	}
	return os.RemoveAll(programs.dir)
}

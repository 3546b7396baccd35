// Package scripts_test drives the real pwos binary as its users do.
package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// binDirEnv names the environment variable that says where TestMain has put the binaries.
const binDirEnv = "PWOS_TEST_BIN"

func TestMain(m *testing.M) {
	if os.Getenv(connectEnv) != "" {
		os.Exit(connectMain(os.Args[len(os.Args)-1]))
	}
	code, err := runWithBinaries(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runWithBinaries builds pwos, pwosd and the examples, the way this test was built, and runs the tests.
func runWithBinaries(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "pwb")
	if err != nil {
		return 1, err
	}
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	if err := build(dir); err != nil {
		return 1, err
	}
	if err := os.Setenv(binDirEnv, dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func build(dir string) error {
	commands := []string{"github.com/promptware-os/pwos/cmd/...", "github.com/promptware-os/pwos/examples/..."}
	args := []string{"build", "-o", dir + "/"}
	if raceDetector() {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, commands...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	if err := buildTool(dir); err != nil {
		return err
	}
	list := append([]string{"list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}, commands...)
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		return fmt.Errorf("list sources: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "sources"), out, 0o600)
}

// buildTool builds the module of examples/promptware, as its README says.
func buildTool(dir string) error {
	cmd := exec.Command("go", "build", "-C", "../../examples/promptware/src/wordcount", "-o", filepath.Join(dir, "wordcount.wasm"), ".")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build wordcount: %w\n%s", err, out)
	}
	return nil
}

// lookAtSources reads the folders that the binaries are made of. `go test` remembers what a test has looked at and runs it
// again when that changes; of what the go command reads on our behalf it would not know, and call a stale result cached. It
// remembers nothing before tests run, so each test has to look.
func lookAtSources() error {
	list, err := os.ReadFile(program("sources"))
	if err != nil {
		return err
	}
	for dir := range strings.FieldsSeq(string(list)) {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// raceDetector reports whether this test was built with -race.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// program returns the path of a binary.
func program(name string) string { return filepath.Join(os.Getenv(binDirEnv), name) }

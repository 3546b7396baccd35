// Package scripts_test runs the real pwos binary as users do.
package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// binDirEnv names the environment variable with the directory of the binaries of TestMain.
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

// runWithBinaries builds pwos, pwosd and the examples, with the flags of this test, and runs the tests.
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
	return testkit.Main(m), nil
}

func build(dir string) error {
	var flags []string
	if testkit.RaceDetector() {
		flags = []string{"-race"}
	}
	var packages []string
	for _, name := range []string{"cmd/pwos", "cmd/pwosd", "cmd/pwos-front", "cmd/pwos-bus", "examples/go/notes", "examples/go/pong"} {
		packages = append(packages, "github.com/promptware-os/pwos/"+name)
	}
	if err := testkit.Build(dir, flags, packages...); err != nil {
		return err
	}
	return buildTool(dir)
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

// program returns the path of a binary.
func program(name string) string { return filepath.Join(os.Getenv(binDirEnv), name) }

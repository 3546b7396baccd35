package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	touched = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
	found   = regexp.MustCompile(`seed (\d+), step`)
)

// TestFaults builds the tree with each of the faults planted, and wants the simulation to find it. Without PWOS_LONG=1 it only
// checks that each still applies. One fault alone: -run TestFaults/key-forgotten.
func TestFaults(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("faults are planted by git, which is not installed")
	}
	files, err := filepath.Glob("faults/*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("list faults: %d, %v", len(files), err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".patch"), func(t *testing.T) {
			overlay, err := plant(root, file, t.TempDir())
			if err != nil {
				t.Fatalf("%s no longer applies: %v", file, err)
			}
			if os.Getenv("PWOS_LONG") == "" {
				return
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay="+overlay, "-run", "^TestSimulation$", ".", "-first", "-seeds", "1000")
			cmd.Env = append(os.Environ(), "PWOS_LONG=", "PWOS_SIMULATE=")
			out, err := cmd.CombinedOutput()
			seed := found.FindSubmatch(out)
			if err == nil || seed == nil {
				t.Fatalf("was not found: %v\n%s", err, out)
			}
			t.Logf("found by seed %s", seed[1])
		})
	}
}

// plant patches copies of the files that a fault changes, and returns a file that has the go command build those.
func plant(root, file, dir string) (overlay string, err error) {
	patch, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for _, m := range touched.FindAllSubmatch(patch, -1) {
		name := string(m[1])
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // no repository: plain files
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("git apply: %w\n%s", err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

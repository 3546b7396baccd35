package simulation_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

var found = regexp.MustCompile(`seed (\d+), step`)

// TestFaults builds the tree with one planted fault at a time, and checks that the simulation finds it. Without PWOS_LONG=1 it only
// checks that each patch applies. To run one fault: -run TestFaults/key-forgotten.
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
			overlay, err := testkit.Plant(root, file, t.TempDir())
			if err != nil {
				t.Fatalf("%s no longer applies: %v", file, err)
			}
			if os.Getenv("PWOS_LONG") == "" {
				return
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay="+overlay, "-run", "^TestSimulation$", ".", "-first", "-seeds=1000")
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

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestPlanted builds the daemon with each of the faults in faults/, which the oracle must find. Without PWOS_LONG=1 it only
// checks that each patch still applies.
func TestPlanted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("faults are planted by git, which is not installed")
	}
	files := testkit.Value(filepath.Glob("faults/*.patch"))(t)
	if len(files) == 0 {
		t.Fatal("there are no faults to plant")
	}
	root := testkit.Value(filepath.Abs("../.."))(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".patch"), func(t *testing.T) {
			overlay, err := testkit.Plant(root, file, t.TempDir())
			if err != nil {
				t.Fatalf("%s no longer applies: %v", file, err)
			}
			if os.Getenv("PWOS_LONG") == "" {
				return
			}
			dir := testkit.Dir(t)
			testkit.Must(t, testkit.Build(dir, []string{"-overlay=" + overlay}, "github.com/promptware-os/pwos/cmd/pwosd"))
			s := run{
				setup:  setup{hosts: 2, nodes: 1, lease: 3 * time.Second, daemon: filepath.Join(dir, "pwosd")},
				script: slices.Repeat([]string{"the leader is stopped"}, 6),
			}
			found := s.run(t)
			if len(found) == 0 {
				t.Fatal("the oracle has not found the fault")
			}
			t.Logf("found: %s", strings.Join(found[:min(len(found), 4)], "\n"))
		})
	}
}

package version_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// TestStamp builds a program as a distribution does, whose sources are in no version control.
func TestStamp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags := []string{"-ldflags", "-X github.com/promptware-os/pwos/internal/version.stamp=v9.8.7"}
	testkit.Must(t, testkit.Build(dir, flags, "github.com/promptware-os/pwos/cmd/pwos-bus"))
	out := string(testkit.Value(exec.Command(filepath.Join(dir, "pwos-bus"), "--version").Output())(t))
	if got := strings.TrimSpace(out); got != "pwos-bus v9.8.7" {
		t.Fatalf("pwos-bus --version printed %q", got)
	}
}

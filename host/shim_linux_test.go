package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// Variables in a program's environment are for the program. The shim, which runs before the mark and the sandbox, ignores
// them: otherwise a Go program would trace its start here, and one with a loader load what LD_PRELOAD names.
func TestShimObeysNoVariable(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := shell(t, `echo "$GODEBUG"`)
	c.Env = map[string]string{"GODEBUG": "inittrace=1"}
	c.Log.Path = filepath.Join(t.TempDir(), "log")
	if got, want := output(t, h, c), "inittrace=1\n"; got != want {
		t.Errorf("the program got %q, want %q", got, want)
	}
	logged, err := os.ReadFile(c.Log.Path)
	testkit.Must(t, err)
	if len(logged) > 0 {
		t.Errorf("the shim printed %q", logged)
	}
}

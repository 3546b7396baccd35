package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMemoryBelowTheShims starts programs whose limit on memory is far below what Go itself takes: the limit applies to the
// program, not to the shim.
func TestMemoryBelowTheShims(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 60 {
		c := shell(t, "exit 7")
		c.Limits.MemoryBytes = 8 << 20
		c.Log.Path = filepath.Join(t.TempDir(), "log")
		p, err := h.Start(context.Background(), c)
		testkit.Must(t, err)
		end, err := p.Wait(context.Background())
		testkit.Must(t, err)
		if end.Code != 7 {
			said, _ := os.ReadFile(c.Log.Path)
			t.Fatalf("it ended with %+v, want the program's own code:\n%s", end, said)
		}
	}
}

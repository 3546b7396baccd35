package authority_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain reduces the frequency of garbage collection: each sequence boots a kernel, which leaves megabytes of garbage.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
	os.Exit(testkit.Main(m))
}

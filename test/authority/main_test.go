package authority_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain gives the collector less to do: a sequence boots a kernel, and leaves some megabytes behind that nobody holds.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
	os.Exit(testkit.Main(m))
}

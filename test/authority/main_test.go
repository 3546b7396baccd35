package authority_test

import (
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives the collector less to do: a sequence boots a kernel, and leaves some megabytes behind that nobody holds.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
	goleak.VerifyTestMain(m)
}

package code_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain is a worker too, and the host's shim and guard.
func TestMain(m *testing.M) {
	host.Shim()
	code.Shim()
	os.Exit(testkit.Main(m))
}

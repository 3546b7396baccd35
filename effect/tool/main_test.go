package tool_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain is the host's shim and guard too, since programs are started.
func TestMain(m *testing.M) {
	host.Shim()
	os.Exit(testkit.Main(m))
}

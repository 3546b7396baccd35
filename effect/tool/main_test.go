package tool_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain also runs the shim and guard of package host, which the test binary is when it starts a program.
func TestMain(m *testing.M) {
	host.Shim()
	os.Exit(testkit.Main(m))
}

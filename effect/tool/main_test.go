package tool_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/host"
)

// TestMain is the host's shim and guard too, since programs are started.
func TestMain(m *testing.M) {
	host.Shim()
	goleak.VerifyTestMain(m)
}

package code_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
)

// TestMain is a worker too, and the host's shim and guard.
func TestMain(m *testing.M) {
	host.Shim()
	code.Shim()
	goleak.VerifyTestMain(m)
}

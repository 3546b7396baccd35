// Package promptware_test takes examples/promptware through what the kernel does with a root.
package promptware_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/host"
)

// TestMain is the host's shim and guard too, since a tool is a program.
func TestMain(m *testing.M) {
	host.Shim()
	goleak.VerifyTestMain(m)
}

// Package promptware_test takes examples/promptware through what the kernel does with a root.
package promptware_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// asDaemon in the environment makes this test binary the daemon: only a process can be killed.
const asDaemon = "PWOS_PROMPTWARE_TEST"

// TestMain is the host's shim and guard too, since a tool is a program.
func TestMain(m *testing.M) {
	host.Shim()
	if os.Getenv(asDaemon) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// Package agents_test tests the programs that a kernel starts, as agents or as tools: real daemons, real programs.
package agents_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// TestMain runs one of many programs: the host's shim and guard, the daemon, the agents of the tests, and the tests.
func TestMain(m *testing.M) {
	daemon.Shim()
	if len(os.Args) > 1 {
		if program, ok := agentPrograms()[os.Args[1]]; ok {
			os.Exit(program(os.Args[2:]))
		}
	}
	testkernel.Main(m)
}

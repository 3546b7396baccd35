package host_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain runs one of three programs: the host's shim and guard, the helper programs of the tests, and the tests.
func TestMain(m *testing.M) {
	if os.Getenv("PWOS_TEST_NO_SHIM") == "" {
		host.Shim()
	}
	if len(os.Args) > 1 {
		if helper, ok := helpers()[os.Args[1]]; ok {
			os.Exit(helper(os.Args[2:]))
		}
	}
	testkit.DefaultHangUp()
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		code = 1
	}
	// All hosts are closed, so no child may be left, not even a zombie.
	if left := children(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "processes are left:", left)
		code = 1
	}
	os.Exit(code)
}

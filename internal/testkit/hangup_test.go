package testkit_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestHangUp: programs of tests that ignore SIGHUP, as nohup starts them, are ended by it; the tests are not.
func TestHangUp(t *testing.T) {
	t.Parallel()
	const within = "PWOS_TEST_HANGUP"
	if os.Getenv(within) != "" {
		testkit.Must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		err := exec.Command("sh", "-c", "kill -HUP $$; echo it goes on").Run()
		if failed, ok := err.(*exec.ExitError); !ok || failed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGHUP {
			t.Errorf("the program ended with %v", err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$0" -test.run='^TestHangUp$' -test.count=1`, testkit.Value(os.Executable())(t))
	cmd.Env = append(os.Environ(), within+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

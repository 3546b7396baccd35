package confine_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host/confine"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestFamily: the process of a thread and its parent are what /proc says, of a thread of this process and of another process.
func TestFamily(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := exec.Command("sleep", "60")
	testkit.Must(t, other.Start())
	defer other.Wait() // its error is that it was killed
	defer other.Process.Kill()
	for _, try := range []struct{ thread, pid, parent int }{
		{unix.Gettid(), os.Getpid(), os.Getppid()}, {other.Process.Pid, other.Process.Pid, os.Getpid()}, {1 << 30, 1 << 30, 0},
	} {
		for name, family := range map[string]func(int) (int, int){"family": confine.Family, "in /proc": confine.FamilyInProc} {
			if pid, parent := family(try.thread); pid != try.pid || parent != try.parent {
				t.Errorf("%s of thread %d is %d, child of %d, want %d of %d", name, try.thread, pid, parent, try.pid, try.parent)
			}
		}
	}
}

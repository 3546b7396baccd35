package unixsock_test

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// What is made is exactly as wide as it should be, whatever the umask: it neither widens nor narrows anything. A umask
// is the whole process's, so each is tried in a process of its own.
func TestModesDoNotDependOnTheUmask(t *testing.T) {
	const role = "UNIXSOCK_TEST_UMASK_DIR"
	if dir := os.Getenv(role); dir != "" {
		makeUnderUmask(t, dir)
		return
	}
	t.Parallel()
	for _, mask := range []string{"0000", "0077", "0277", "0177"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestModesDoNotDependOnTheUmask$")
			child.Env = append(os.Environ(), role+"="+tempPlaces(t).Dir, "UNIXSOCK_TEST_UMASK="+mask, "GORACE=atexit_sleep_ms=0")
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func makeUnderUmask(t *testing.T, dir string) {
	places := unixsock.PlacesIn(dir)
	mask := map[string]int{"0000": 0, "0077": 0o077, "0277": 0o277, "0177": 0o177}[os.Getenv("UNIXSOCK_TEST_UMASK")]
	must(t, os.Mkdir(dir, 0o700)) // a umask that takes the owner's own bits makes useless directories
	syscall.Umask(mask)
	must(t, unixsock.EnsurePrivateDir(dir))
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	for path, want := range map[string]fs.FileMode{
		places.Dir:          fs.ModeDir | 0o700,
		places.Lock:         0o600,
		places.KernelSocket: fs.ModeSocket | 0o600,
	} {
		if got := inode(t, path).Mode(); got != want {
			t.Errorf("%s: mode %v, want %v", path, got, want)
		}
	}
	must(t, listeners[0].Close())
	must(t, lock.Release())
}

package access_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// takeLease prevents opens of a file until the test ends, as a program of the file's owner can.
func takeLease(t *testing.T, path string) error {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

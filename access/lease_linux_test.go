package access_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// takeLease keeps everybody else from opening a file until the test ends, as a program can whose user owns it.
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

package host

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForkKeepsShim: whatever descriptors a program is started with, none takes the place of the shim's in the child.
func TestForkKeepsShim(t *testing.T) {
	t.Parallel()
	program, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for range 100 { // until two numbers are free that follow each other
		first, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, 200)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(first), "first")
		next, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, first+1)
		if err != nil {
			t.Fatal(err)
		}
		s := &shimFile{next}
		if next == first+1 {
			call := &forkCall{shim: s, argv: []string{"true"}, dir: "/", files: []descriptor{file}}
			w, err := call.do()
			if err != nil {
				t.Error(err)
			} else if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != nil {
				t.Error(err)
			}
		}
		s.close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if next == first+1 {
			return
		}
	}
	t.Fatal("no two free descriptors follow each other")
}

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// Allocated blocks take room on the disk without being part of the file, and the next cut frees them.
func TestAllocate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	f, err := journal.OSFS{}.Create(path)
	testkit.Must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("abc"), 0)
	testkit.Must(t, err)
	if err := f.Allocate(3, 1<<20); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the file system allocates nothing ahead")
	} else if err != nil {
		t.Fatal(err)
	}
	blocks := func() int64 {
		st, err := os.Stat(path)
		testkit.Must(t, err)
		if st.Size() != 3 {
			t.Errorf("size %d, want 3", st.Size())
		}
		return st.Sys().(*syscall.Stat_t).Blocks * 512
	}
	if n := blocks(); n < 1<<20 {
		t.Errorf("%d bytes on the disk, want what was allocated", n)
	}
	testkit.Must(t, f.Truncate(3))
	if n := blocks(); n > 1<<16 {
		t.Errorf("%d bytes on the disk after the cut", n)
	}
}

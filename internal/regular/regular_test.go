package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.WriteFile(t, file, "text")
	testkit.Must(t, os.Chmod(file, 0o644))
	link, fifo, missing := filepath.Join(dir, "link"), filepath.Join(dir, "fifo"), filepath.Join(dir, "missing")
	testkit.Must(t, os.Symlink(file, link))
	testkit.Must(t, unix.Mkfifo(fifo, 0o600))

	for _, c := range []struct {
		path string
		flag int
		mode fs.FileMode // of the file, if it is opened
		want error
	}{
		{path: file, flag: os.O_RDONLY, mode: 0o644},
		{path: file, flag: os.O_RDWR | os.O_CREATE, mode: 0o600},
		{path: missing, flag: os.O_RDONLY, want: fs.ErrNotExist},
		{path: link, flag: os.O_RDONLY, want: fault.PlaceUnsafe},
		{path: link, flag: os.O_RDWR | os.O_CREATE, want: fault.PlaceUnsafe},
		{path: fifo, flag: os.O_RDONLY, want: fault.PlaceUnsafe},
		{path: fifo, flag: os.O_RDWR | os.O_CREATE, want: fault.PlaceUnsafe},
		{path: dir, flag: os.O_RDONLY, want: fault.PlaceUnsafe},
		{path: filepath.Join(dir, "new"), flag: os.O_RDWR | os.O_CREATE, mode: 0o600},
	} {
		f, info, err := regular.Open(c.path, c.flag)
		if !errors.Is(err, c.want) {
			t.Errorf("%s with %#x: %v, want %v", c.path, c.flag, err, c.want)
		}
		if err != nil {
			continue
		}
		if !info.Mode().IsRegular() {
			t.Errorf("%s has mode %v", c.path, info.Mode())
		}
		if mode := testkit.Value(f.Stat())(t).Mode(); mode != c.mode {
			t.Errorf("%s has mode %v afterwards, want %v", c.path, mode, c.mode)
		}
		testkit.Must(t, f.Close())
	}
}

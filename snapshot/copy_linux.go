package snapshot

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a new file share the blocks of another.
func clone(target, source *os.File) error {
	return unix.IoctlFileClone(int(target.Fd()), int(source.Fd()))
}

// copyData copies the data of a file, and keeps its holes. It stops after most bytes.
func copyData(target, source *os.File, most int64) (copied int64, err error) {
	info, err := source.Stat()
	if err != nil {
		return 0, err
	}
	size, at := info.Size(), int64(0)
	if err := target.Truncate(size); err != nil {
		return 0, err
	}
	for at < size && copied <= most {
		start, err := source.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // the rest is a hole
			break
		}
		if err != nil {
			return copied, err
		}
		end, err := source.Seek(start, unix.SEEK_HOLE)
		if err != nil {
			return copied, err
		}
		if _, err := source.Seek(start, io.SeekStart); err != nil {
			return copied, err
		}
		if _, err := target.Seek(start, io.SeekStart); err != nil {
			return copied, err
		}
		n, err := io.CopyN(target, source, min(end-start, most-copied+1))
		if copied += n; err != nil && !errors.Is(err, io.EOF) {
			return copied, err
		}
		at = end
	}
	return copied, nil
}

// flush waits until all writes to the file system of f are on disk.
func flush(f *folder) error { return unix.Syncfs(f.fd) }

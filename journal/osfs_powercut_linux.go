//go:build pwos_powercut

package journal

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// With the build tag pwos_powercut, writes to a file of the journal stay in this process until the file is synced. A kill
// -9 then loses what a power cut would lose, so a test can cut the power of a daemon in another process. Names of files are
// durable immediately.
//
//	go build -tags pwos_powercut -o pwosd ./cmd/pwosd

// fileID identifies a file while it exists: inode numbers are reused.
type fileID struct {
	inode, seconds uint64
	nanoseconds    uint32
}

// unsynced has the changes of all files that are not on disk. It is global to the process, as the page cache is global to
// the machine, because files are opened more than once.
var unsynced = struct {
	sync.Mutex
	changes map[fileID][]change
}{changes: make(map[fileID][]change)}

// change is a write of data at off; without data it sets the size to off.
type change struct {
	off  int64
	data []byte
}

func (f osFile) id() (fileID, error) {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st)
	return fileID{st.Ino, uint64(st.Btime.Sec), st.Btime.Nsec}, err
}

func (f osFile) note(c change) error {
	id, err := f.id()
	if err != nil {
		return err
	}
	unsynced.Lock()
	defer unsynced.Unlock()
	unsynced.changes[id] = append(unsynced.changes[id], c)
	return nil
}

// WriteAt implements File.
func (f osFile) WriteAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.note(change{off, slices.Clone(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Truncate implements File.
func (f osFile) Truncate(size int64) error { return f.note(change{off: size}) }

// ReadAt implements File. It reads synced and unsynced data.
func (f osFile) ReadAt(p []byte, off int64) (int, error) {
	id, err := f.id()
	if err != nil {
		return 0, err
	}
	unsynced.Lock()
	defer unsynced.Unlock()
	clear(p)
	if _, err := f.File.ReadAt(p, off); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	size, err := f.sizeWith(unsynced.changes[id])
	if err != nil {
		return 0, err
	}
	for _, c := range unsynced.changes[id] {
		if c.data == nil {
			clear(p[min(max(0, c.off-off), int64(len(p))):])
			continue
		}
		from, to := max(off, c.off), min(off+int64(len(p)), c.off+int64(len(c.data)))
		if from < to {
			copy(p[from-off:to-off], c.data[from-c.off:])
		}
	}
	n := int(min(max(0, size-off), int64(len(p))))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// sizeWith returns the size of the file after changes.
func (f osFile) sizeWith(changes []change) (int64, error) {
	st, err := f.File.Stat()
	if err != nil {
		return 0, err
	}
	size := st.Size()
	for _, c := range changes {
		if c.data == nil {
			size = c.off
		} else {
			size = max(size, c.off+int64(len(c.data)))
		}
	}
	return size, nil
}

// sizedInfo is the result of Stat for a file with unsynced changes.
type sizedInfo struct {
	os.FileInfo
	size int64
}

// Size returns the size including the changes.
func (i sizedInfo) Size() int64 { return i.size }

// Stat returns the size including the changes.
func (f osFile) Stat() (os.FileInfo, error) {
	id, err := f.id()
	if err != nil {
		return nil, err
	}
	st, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	unsynced.Lock()
	defer unsynced.Unlock()
	size, err := f.sizeWith(unsynced.changes[id])
	return sizedInfo{st, size}, err
}

// Sync implements File.
func (f osFile) Sync() error {
	id, err := f.id()
	if err != nil {
		return err
	}
	if err := f.apply(id); err != nil {
		return err
	}
	return f.File.Sync()
}

// apply writes the changes to the file. If the process is killed meanwhile, the first changes are kept.
func (f osFile) apply(id fileID) error {
	unsynced.Lock()
	defer unsynced.Unlock()
	for i, c := range unsynced.changes[id] {
		err := error(nil)
		if c.data == nil {
			err = f.File.Truncate(c.off)
		} else {
			_, err = f.File.WriteAt(c.data, c.off)
		}
		if err != nil {
			unsynced.changes[id] = unsynced.changes[id][i:]
			return err
		}
	}
	delete(unsynced.changes, id)
	return nil
}

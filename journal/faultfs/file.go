package faultfs

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"github.com/promptware-os/pwos/journal"
)

// An inode has a file's contents twice: as the running system reads them, and as they are on disk. log has the changes from
// the second to the first.
type inode struct {
	data []byte
	disk []byte
	log  []change
	kept int64 // bytes from the start that the disk keeps for it: contents, and what was allocated
}

// newInode returns a file with the given data, all durable.
func newInode(data []byte) *inode {
	return &inode{data: slices.Clone(data), disk: slices.Clone(data), kept: int64(len(data))}
}

// A change is a write of data at off, or, if data is nil, a truncation to off.
type change struct {
	off  int64
	data []byte
}

func (c change) apply(b []byte) []byte {
	if c.data == nil {
		return resize(b, c.off)
	}
	return put(b, c.off, c.data)
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

func put(b []byte, off int64, data []byte) []byte {
	b = resize(b, max(int64(len(b)), off+int64(len(data))))
	copy(b[off:], data)
	return b
}

type file struct {
	d     *Disk
	n     *inode
	path  string
	write bool
}

var _ journal.File = (*file)(nil)

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes as much as fits on the disk.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	if err := f.begin(Write); err != nil {
		return 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n = int(max(0, f.d.take(f.n, off+int64(len(p)))-off))
	if n < len(p) {
		err = fmt.Errorf("write %s: %w", f.path, syscall.ENOSPC)
	}
	if n > 0 {
		f.change(change{off: off, data: slices.Clone(p[:n])})
	}
	return n, err
}

func (f *file) Truncate(size int64) error {
	if err := f.begin(Truncate); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.free += f.n.kept - size
	f.n.kept = size
	f.change(change{off: size})
	return nil
}

// Allocate allocates everything or nothing.
func (f *file) Allocate(off, length int64) error {
	if err := f.begin(Allocate); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	end := off + length
	if f.d.full && end-f.n.kept > f.d.free {
		return fmt.Errorf("allocate %s: %w", f.path, syscall.ENOSPC)
	}
	f.d.take(f.n, end)
	return nil
}

// begin is called before a change.
func (f *file) begin(k Kind) error {
	if !f.write {
		return fmt.Errorf("write %s: %w", f.path, errReadOnly)
	}
	f.d.hook(k, f.path)
	return nil
}

func (f *file) change(c change) {
	f.n.data = c.apply(f.n.data)
	f.n.log = append(f.n.log, c)
}

// Sync covers what was written before the call, but not what its hook writes.
func (f *file) Sync() error {
	f.d.mu.Lock()
	covers := len(f.n.log)
	f.d.mu.Unlock()
	f.d.hook(Sync, f.path)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.NoSync {
		return nil
	}
	for _, c := range f.n.log[:covers] {
		f.n.disk = c.apply(f.n.disk)
	}
	f.n.log = slices.Clone(f.n.log[covers:])
	return nil
}

// LoseUnsynced does what Linux does after a failed fsync: written data stays readable but counts as clean, so no later Sync
// writes it. Lengths are metadata and are kept.
func (f *file) LoseUnsynced() {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	size := int64(len(f.n.disk))
	var lengths []change
	for _, c := range f.n.log {
		if end := c.off + int64(len(c.data)); c.data == nil || end > size {
			lengths = append(lengths, change{off: end})
			size = end
		}
	}
	f.n.log = lengths
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *file) Close() error {
	if f.n == nil {
		return fmt.Errorf("close %s: %w", f.path, fs.ErrClosed)
	}
	return nil
}

// Package faultfs has file systems that fail on purpose, for tests of a journal.
package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/journal"
)

// A Disk is a file system in memory that knows which of its bytes and names survive a power cut. Contents are durable after
// Sync, names after SyncDir. Crash returns the disk that the next boot finds.
//
// It supports regular files in directories of one level, which is all that a journal uses.
type Disk struct {
	// Hook, if not nil, is called before each operation that changes something takes effect, one Op at a time. Each call is
	// a point at which the power may fail. It may read and write the disk, and Crash it.
	Hook func(Op)

	// NoSync and NoSyncDir make Sync and SyncDir return without an effect.
	NoSync, NoSyncDir bool

	mu      sync.Mutex
	full    bool              // free is a limit
	free    int64             // bytes that files may still take
	dirs    map[string]bool   // whether the name is durable
	names   map[string]*inode // as the running system sees them
	durable map[string]*inode // as they are after a power cut
	locks   map[string]bool
}

// An Op is an operation that changes the disk.
type Op struct {
	Kind Kind
	Path string
}

// Kind is the kind of an operation.
type Kind uint8

// The operations that change a Disk.
const (
	Mkdir Kind = iota + 1
	Create
	Write
	Truncate
	Allocate
	Rename
	Remove
	Sync
	SyncDir
)

var _ journal.FS = (*Disk)(nil)

// NewDisk returns an empty disk with the directory "/".
func NewDisk() *Disk {
	return &Disk{
		dirs:  map[string]bool{"/": true},
		names: map[string]*inode{}, durable: map[string]*inode{}, locks: map[string]bool{},
	}
}

func (d *Disk) hook(k Kind, path string) {
	if d.Hook != nil {
		d.Hook(Op{k, path})
	}
}

// Mkdir implements journal.FS.
func (d *Disk) Mkdir(name string) error {
	d.hook(Mkdir, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.dirs[name]; ok {
		return fmt.Errorf("mkdir %s: %w", name, fs.ErrExist)
	}
	if _, ok := d.dirs[filepath.Dir(name)]; !ok {
		return fmt.Errorf("mkdir %s: %w", name, fs.ErrNotExist)
	}
	d.dirs[name] = false
	return nil
}

// ReadDir implements journal.FS.
func (d *Disk) ReadDir(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.dirs[name]; !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	var names []string
	for path := range d.names {
		if filepath.Dir(path) == name {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Open implements journal.FS.
func (d *Disk) Open(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return &file{d: d, n: n, path: name}, nil
}

// Create implements journal.FS.
func (d *Disk) Create(name string) (journal.File, error) {
	d.mu.Lock()
	n := d.names[name]
	_, parent := d.dirs[filepath.Dir(name)]
	d.mu.Unlock()
	if n == nil {
		if !parent {
			return nil, fmt.Errorf("create %s: %w", name, fs.ErrNotExist)
		}
		d.hook(Create, name)
		n = &inode{}
		d.mu.Lock()
		d.names[name] = n
		d.mu.Unlock()
	}
	return &file{d: d, n: n, path: name, write: true}, nil
}

// Rename implements journal.FS.
func (d *Disk) Rename(from, to string) error {
	d.hook(Rename, from)
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[from]
	if n == nil {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	delete(d.names, from)
	d.names[to] = n
	return nil
}

// Remove implements journal.FS.
func (d *Disk) Remove(name string) error {
	d.hook(Remove, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	delete(d.names, name)
	d.free += n.kept
	return nil
}

// Leave limits the room on the disk to free more bytes. Without it the room is unlimited.
func (d *Disk) Leave(free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.free = true, free
}

// Free makes the room on the disk unlimited again.
func (d *Disk) Free() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = false
}

// Kept returns the bytes that files occupy: their contents, and what was allocated.
func (d *Disk) Kept() (bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.names {
		bytes += n.kept
	}
	return bytes
}

// take reserves bytes up to end for n, and returns the end that it reached. mu is locked.
func (d *Disk) take(n *inode, end int64) int64 {
	more := end - n.kept
	if d.full {
		more = min(more, d.free)
	}
	if more > 0 {
		n.kept += more
		d.free -= more
	}
	return min(n.kept, end)
}

// SyncDir implements journal.FS.
func (d *Disk) SyncDir(name string) error {
	d.hook(SyncDir, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.NoSyncDir {
		return nil
	}
	for dir := range d.dirs {
		if filepath.Dir(dir) == name {
			d.dirs[dir] = true
		}
	}
	for path := range d.durable {
		if filepath.Dir(path) == name {
			delete(d.durable, path) // unless it still exists
		}
	}
	for path, n := range d.names {
		if filepath.Dir(path) == name {
			d.durable[path] = n
		}
	}
	return nil
}

// Lock implements journal.FS.
func (d *Disk) Lock(dir string) (journal.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks[dir] {
		return nil, journal.ErrLocked
	}
	d.locks[dir] = true
	return lockedDir{d, dir}, nil
}

type lockedDir struct {
	d   *Disk
	dir string
}

func (l lockedDir) Sync() error { return l.d.SyncDir(l.dir) }

func (l lockedDir) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	delete(l.d.locks, l.dir)
	return nil
}

// Kill ends the running process: its locks are released, and its unsynced writes remain, but not durable.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.locks)
}

// Image returns the contents of all files as the running system sees them, by path.
func (d *Disk) Image() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := make(map[string][]byte, len(d.names))
	for path, n := range d.names {
		m[path] = slices.Clone(n.data)
	}
	return m
}

// FromImage returns a disk with these files, all durable.
func FromImage(files map[string][]byte) *Disk {
	d := NewDisk()
	for path, data := range files {
		d.dirs[filepath.Dir(path)] = true
		d.names[path] = newInode(data)
	}
	d.durable = maps.Clone(d.names)
	return d
}

var errReadOnly = errors.New("file is open for reading only")

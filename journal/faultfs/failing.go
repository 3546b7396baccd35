package faultfs

import (
	"sync"

	"github.com/promptware-os/pwos/journal"
)

// Failing is a file system on top of another, in which one or two operations fail.
type Failing struct {
	journal.FS

	mu    sync.Mutex
	fault Fault
	count int
	hit   string
}

// A Fault says which operation fails, and how.
type Fault struct {
	N     int   // the N-th operation of any kind, from 1; 0: none
	Then  int   // another operation fails this many later; 0: none
	Err   error // the error that it returns
	Short bool  // a write writes half of its bytes first
	Lies  bool  // a short write returns no error, only its count
}

// NewFailing returns a Failing on top of under.
func NewFailing(under journal.FS, fault Fault) *Failing { return &Failing{FS: under, fault: fault} }

// Count returns the number of operations so far.
func (f *Failing) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// Hit returns the kind of the operation that failed first, or "".
func (f *Failing) Hit() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// Arm sets a fault whose N counts from now.
func (f *Failing) Arm(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.count, f.hit = fault, 0, ""
}

func (f *Failing) fail(kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	second := f.fault.N > 0 && f.fault.Then > 0 && f.count == f.fault.N+f.fault.Then
	if f.count != f.fault.N && !second {
		return false
	}
	if !second {
		f.hit = kind
	}
	return true
}

// Mkdir implements journal.FS.
func (f *Failing) Mkdir(name string) error {
	if f.fail("mkdir") {
		return f.fault.Err
	}
	return f.FS.Mkdir(name)
}

// ReadDir implements journal.FS.
func (f *Failing) ReadDir(name string) ([]string, error) {
	if f.fail("readdir") {
		return nil, f.fault.Err
	}
	return f.FS.ReadDir(name)
}

// Open implements journal.FS.
func (f *Failing) Open(name string) (journal.File, error) {
	if f.fail("open") {
		return nil, f.fault.Err
	}
	return f.wrap(f.FS.Open(name))
}

// Create implements journal.FS. A failing one creates the file first.
func (f *Failing) Create(name string) (journal.File, error) {
	failed := f.fail("create")
	file, err := f.FS.Create(name)
	if failed && err == nil {
		_ = file.Close()
		return nil, f.fault.Err
	}
	return f.wrap(file, err)
}

// Rename implements journal.FS. A failing one with Short renames the file first.
func (f *Failing) Rename(from, to string) error {
	failed := f.fail("rename")
	if failed && !f.fault.Short {
		return f.fault.Err
	}
	err := f.FS.Rename(from, to)
	if failed && err == nil {
		return f.fault.Err
	}
	return err
}

// Remove implements journal.FS. A failing one with Short removes the file first.
func (f *Failing) Remove(name string) error {
	failed := f.fail("remove")
	if failed && !f.fault.Short {
		return f.fault.Err
	}
	err := f.FS.Remove(name)
	if failed && err == nil {
		return f.fault.Err
	}
	return err
}

// SyncDir implements journal.FS.
func (f *Failing) SyncDir(name string) error {
	if f.fail("syncdir") {
		return f.fault.Err
	}
	return f.FS.SyncDir(name)
}

// Lock implements journal.FS.
func (f *Failing) Lock(dir string) (journal.Dir, error) {
	if f.fail("lock") {
		return nil, f.fault.Err
	}
	d, err := f.FS.Lock(dir)
	if err != nil {
		return nil, err
	}
	return failingDir{d, f}, nil
}

type failingDir struct {
	journal.Dir

	fs *Failing
}

func (d failingDir) Sync() error {
	if d.fs.fail("syncdir") {
		return d.fs.fault.Err
	}
	return d.Dir.Sync()
}

func (f *Failing) wrap(under journal.File, err error) (journal.File, error) {
	if err != nil {
		return nil, err
	}
	return &failingFile{File: under, fs: f}, nil
}

type failingFile struct {
	journal.File

	fs *Failing
}

func (f *failingFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fs.fail("read") {
		return 0, f.fs.fault.Err
	}
	return f.File.ReadAt(p, off)
}

func (f *failingFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.fs.fail("write") {
		return f.File.WriteAt(p, off)
	}
	if !f.fs.fault.Short {
		return 0, f.fs.fault.Err
	}
	n, err := f.File.WriteAt(p[:len(p)/2], off)
	if err != nil || f.fs.fault.Lies {
		return n, err
	}
	return n, f.fs.fault.Err
}

func (f *failingFile) Truncate(size int64) error {
	if f.fs.fail("truncate") {
		return f.fs.fault.Err
	}
	return f.File.Truncate(size)
}

func (f *failingFile) Allocate(off, length int64) error {
	if f.fs.fail("allocate") {
		return f.fs.fault.Err
	}
	return f.File.Allocate(off, length)
}

// Sync implements journal.File. A failing one loses the unsynced data.
func (f *failingFile) Sync() error {
	if !f.fs.fail("sync") {
		return f.File.Sync()
	}
	if l, ok := f.File.(interface{ LoseUnsynced() }); ok {
		l.LoseUnsynced()
	}
	return f.fs.fault.Err
}

func (f *failingFile) Size() (int64, error) {
	if f.fs.fail("size") {
		return 0, f.fs.fault.Err
	}
	return f.File.Size()
}

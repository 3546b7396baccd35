package snapshot

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// folder is an open directory. Names are those of its entries; symbolic links are never followed.
type folder struct {
	*os.File
	fd    int
	depth int
	dev   uint64
	was   *uint32 // the mode that Close restores
}

// maxDepth bounds the depth of a tree, since each level needs descriptors.
const maxDepth = 1000

var errTooDeep = fmt.Errorf("directories are nested more than %d deep", maxDepth)

// errMoved is the error for an entry that was replaced while it was examined.
var errMoved = errors.New("it was replaced meanwhile")

// openTop opens a directory by its path, in which the caller allows no symbolic link. A directory without permission is
// opened as by openAnyway.
func openTop(path string) (*folder, error) {
	return opened(unix.AT_FDCWD, path, 0, func() (*entry, error) {
		var st unix.Stat_t
		err := unix.Lstat(path, &st)
		return entryOf(path, &st), err
	})
}

// opened opens a directory. If its owner may not read it, its mode is widened until Close.
func opened(at int, name string, depth int, stat func() (*entry, error)) (*folder, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if err == nil || stat == nil || !errors.Is(err, unix.EACCES) {
		return newFolder(fd, name, depth, err)
	}
	e, err := stat()
	if err == nil {
		err = unix.Fchmodat(at, name, e.mode|0o700, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil, err
	}
	fd, err = unix.Openat(at, name, flags, 0)
	f, err := newFolder(fd, name, depth, err)
	if err == nil {
		f.was = &e.mode
	}
	return f, err
}

func newFolder(fd int, name string, depth int, err error) (*folder, error) {
	if err != nil {
		return nil, err
	}
	f := &folder{File: os.NewFile(uintptr(fd), name), fd: fd, depth: depth}
	e, err := f.self()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.dev = e.dev
	return f, nil
}

// Close restores the mode of the directory, and closes it.
func (f *folder) Close() error {
	var err error
	if f.was != nil {
		err = unix.Fchmod(f.fd, *f.was)
	}
	return errors.Join(err, f.File.Close())
}

// open opens the directory e.
func (f *folder) open(e *entry) (*folder, error) {
	if f.depth == maxDepth {
		return nil, errTooDeep
	}
	return opened(f.fd, e.name, f.depth+1, nil)
}

// openAnyway opens the directory e, with a mode that lets its owner read it until Close.
func (f *folder) openAnyway(e *entry) (below *folder, err error) {
	if f.depth == maxDepth {
		return nil, errTooDeep
	}
	if below, err = opened(f.fd, e.name, f.depth+1, func() (*entry, error) { return e, nil }); err != nil {
		return nil, err
	}
	return below, below.widen(e, 0o500)
}

// widen adds permissions of the owner to a directory until Close.
func (f *folder) widen(e *entry, bits uint32) error {
	if e.mode&bits == bits || asRoot() {
		return nil
	}
	if f.was == nil {
		f.was = &e.mode
	}
	return unix.Fchmod(f.fd, *f.was|0o700)
}

// read opens the regular file e.
func (f *folder) read(e *entry) (*os.File, error) {
	fd, err := unix.Openat(f.fd, e.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), e.name)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readAnyway is read, which widens the mode while the file is opened if its owner may not read it.
func (f *folder) readAnyway(e *entry) (*os.File, error) {
	file, err := f.read(e)
	if !errors.Is(err, unix.EACCES) {
		return file, err
	}
	if err := f.allow(e, 0o400); err != nil {
		return nil, err
	}
	if file, err = f.read(e); err != nil {
		return nil, err
	}
	if err := unix.Fchmod(int(file.Fd()), e.mode); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// create makes a new file.
func (f *folder) create(name string) (*os.File, error) {
	fd, err := unix.Openat(f.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mkdir creates a directory, and opens it.
func (f *folder) mkdir(name string) (*folder, error) {
	if err := unix.Mkdirat(f.fd, name, 0o700); err != nil {
		return nil, err
	}
	return f.open(&entry{name: name})
}

func (f *folder) link(e *entry) (string, error) {
	for size := 256; ; size *= 4 {
		text := make([]byte, size)
		n, err := unix.Readlinkat(f.fd, e.name, text)
		if err != nil || n < size {
			return string(text[:max(n, 0)]), err
		}
	}
}

func (f *folder) rename(from, to string) error { return unix.Renameat(f.fd, from, f.fd, to) }

// entries returns the entries of f, sorted by name.
func (f *folder) entries() (list []*entry, err error) {
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		switch e, err := f.entry(name); {
		case errors.Is(err, fs.ErrNotExist): // it was removed concurrently
		case err != nil:
			return nil, named(name, err)
		default:
			list = append(list, e)
		}
	}
	return list, nil
}

// entry is an entry of a directory.
type entry struct {
	name         string
	kind         uint32 // S_IFREG, …
	mode         uint32 // permissions, and the set-id and sticky bits
	uid, gid     uint32
	size, taken  int64 // size, and allocated bytes
	mtime, ctime unix.Timespec
	dev          uint64
}

func (f *folder) entry(name string) (*entry, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	return entryOf(name, &st), nil
}

// self returns f as an entry.
func (f *folder) self() (*entry, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return nil, err
	}
	e := entryOf(".", &st)
	if f.was != nil {
		e.mode = *f.was
	}
	return e, nil
}

func entryOf(name string, st *unix.Stat_t) *entry {
	return &entry{
		name: name, kind: uint32(st.Mode) & unix.S_IFMT, mode: uint32(st.Mode) & 0o7777, uid: st.Uid, gid: st.Gid,
		size: st.Size, taken: min(st.Size, st.Blocks*512), mtime: st.Mtim, ctime: st.Ctim, dev: uint64(st.Dev),
	}
}

func (e *entry) dir() bool     { return e.kind == unix.S_IFDIR }
func (e *entry) regular() bool { return e.kind == unix.S_IFREG }
func (e *entry) symlink() bool { return e.kind == unix.S_IFLNK }

// special reports whether e is a socket, a pipe or a device.
func (e *entry) special() bool { return !e.dir() && !e.regular() && !e.symlink() }

// mounted reports whether another file system is mounted at e, an entry of f.
func (f *folder) mounted(e *entry) bool { return e.dir() && e.dev != f.dev }

// changedAfter reports whether e has changed after t, by its ctime, which programs cannot set.
func (e *entry) changedAfter(t time.Time) bool { return time.Unix(e.ctime.Unix()).After(t) }

// asRoot reports whether owners are kept.
func asRoot() bool { return os.Geteuid() == 0 }

// sameAttributes reports whether two entries have the same mode, owner and, unless they are directories, time.
func sameAttributes(a, b *entry) bool {
	return a.mode == b.mode && (a.dir() || a.mtime == b.mtime) && (!asRoot() || a.uid == b.uid && a.gid == b.gid)
}

// dress sets the attributes of an open file or directory to those of e. The mode is set last, since it may forbid changes
// of entries.
func dress(file *os.File, e *entry, at *folder, name string) error {
	fd := int(file.Fd())
	if asRoot() {
		if err := unix.Fchown(fd, int(e.uid), int(e.gid)); err != nil {
			return err
		}
	}
	if err := at.setTime(name, e); err != nil {
		return err
	}
	return unix.Fchmod(fd, e.mode)
}

// setTime sets the time of the entry, also if it is a link.
func (f *folder) setTime(name string, e *entry) error {
	times := []unix.Timespec{e.mtime, e.mtime}
	return unix.UtimesNanoAt(f.fd, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// dressLink is dress for a symbolic link, which has no mode.
func (f *folder) dressLink(name string, e *entry) error {
	if asRoot() {
		if err := unix.Fchownat(f.fd, name, int(e.uid), int(e.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return f.setTime(name, e)
}

// allow adds permissions of the owner to an entry that lacks them, unless it was replaced with a symbolic link.
func (f *folder) allow(e *entry, bits uint32) error {
	if e.mode&bits == bits || asRoot() {
		return nil
	}
	return unix.Fchmodat(f.fd, e.name, e.mode|bits, unix.AT_SYMLINK_NOFOLLOW)
}

// remove removes an entry and everything below it, except for other file systems.
func (f *folder) remove(e *entry) error {
	if !e.dir() {
		return ignoreGone(unix.Unlinkat(f.fd, e.name, 0))
	}
	if f.mounted(e) {
		return named(e.name, errMounted)
	}
	if err := f.allow(e, 0o700); err != nil {
		return named(e.name, err)
	}
	below, err := f.open(e)
	if err != nil {
		return named(e.name, err)
	}
	err = below.empty()
	if err = errors.Join(err, below.Close()); err != nil {
		return named(e.name, err)
	}
	return ignoreGone(unix.Unlinkat(f.fd, e.name, unix.AT_REMOVEDIR))
}

// empty removes all entries.
func (f *folder) empty() error {
	list, err := f.entries()
	for _, e := range list {
		if err == nil {
			err = f.remove(e)
		}
	}
	return err
}

var errMounted = errors.New("another file system is mounted there: unmount it first")

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// failure is an error about an entry. The path grows while the error is returned.
type failure struct {
	path string
	err  error
}

func (f *failure) Error() string { return fmt.Sprintf("%q: %v", f.path, f.err) }
func (f *failure) Unwrap() error { return f.err }

// named prepends the name of an entry to the path of an error.
func named(name string, err error) error {
	var below *failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &below):
		return &failure{path: name + "/" + below.path, err: below.err}
	}
	return &failure{path: name, err: err}
}

// failed converts an error to the one for the caller.
func failed(what, dir string, err error) error {
	var known *fault.Fault
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.SnapshotTooBig.New("%s %q: the disk is full", what, dir).WithFix("free space, and try again")
	}
	return fault.SnapshotFailed.New("%s %q: %v", what, dir, err)
}

// random returns a temporary name for a file before its rename.
func random(prefix string) string { return prefix + rand.Text()[:12] }

package blob

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Options configure a Store; 0 means the default.
type Options struct {
	Dir       string           // <runtime>/blobs, absolute; created with mode 0700 if it is missing
	Origin    string           // the kernel's own, whose blobs are in Dir itself
	FileBytes int64            // of one blob; 0: 64 MiB
	DirBytes  int64            // of all blobs; 0: 1 GiB
	DirFiles  int              // of all blobs; 0: 65,536
	Share     int64            // of the blobs of one process; 0: 128 MiB
	TTL       time.Duration    // time to live of a blob that is not in use; 0: 1 h
	Now       func() time.Time // nil: time.Now
}

// Store is a directory of blobs. Its methods are safe for concurrent use.
type Store struct {
	dir    string
	origin string
	limits Options
	now    func() time.Time
	root   atomic.Pointer[os.Root] // replaced if the directory was removed
	settle time.Duration           // how long Open waits for a file that has just changed

	mu      sync.Mutex
	closed  bool
	entries map[string]entry // known files of the directory, by path below it
	uses    map[string]int   // number of holders of a blob, by path; a blob with holders is not removed
	writing map[string]bool  // paths of files that are being written
	used    Usage
	held    map[int64]int64 // bytes of the blobs that were written for each process
	shares  map[int64]share
}

// entry is a file that counts against the quota.
type entry struct {
	size int64
	at   time.Time // time of the last use
	id   identity  // of a file that the store has written; zero for files of other programs
	pid  int64     // of the process that it was written for
}

// Usage is the known content of the directory. Files of other programs count from the first Sweep or Open that finds them.
type Usage struct {
	Files int
	Bytes int64
}

// New opens the store and removes files of an earlier one: unfinished files, and those older than the time to live. Only
// one store may use a directory; the instance lock ensures that.
func New(o Options) (*Store, error) {
	o.FileBytes = cmp.Or(o.FileBytes, 64<<20)
	o.DirBytes = cmp.Or(o.DirBytes, 1<<30)
	o.DirFiles = cmp.Or(o.DirFiles, 1<<16)
	o.Share = cmp.Or(o.Share, 128<<20)
	o.TTL = cmp.Or(o.TTL, time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("open blobs: %q is not an absolute path", o.Dir)
	}
	o.Dir = filepath.Clean(o.Dir)
	root, err := openPrivate(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	s := &Store{
		dir: o.Dir, origin: o.Origin, limits: o, now: o.Now, settle: settleTime + time.Millisecond,
		entries: map[string]entry{}, uses: map[string]int{}, writing: map[string]bool{},
		held: map[int64]int64{}, shares: map[int64]share{},
	}
	s.root.Store(root)
	// The processes of the previous kernel have ended, so their directories are removed.
	err = s.clearShared()
	if err == nil {
		_, err = s.sweepFolders(true)
	}
	if err = errors.Join(err, s.clear()); err != nil {
		return nil, errors.Join(fmt.Errorf("clear blobs: %w", err), root.Close())
	}
	return s, nil
}

// openPrivate opens a directory that no other user may read, and creates a missing one.
func openPrivate(dir string) (*os.Root, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	named, lerr := os.Lstat(dir)
	if err = errors.Join(err, lerr); err == nil {
		switch {
		case !named.IsDir() || !os.SameFile(opened, named):
			err = fmt.Errorf("%s is a symbolic link: remove it", dir)
		case !ours(opened):
			err = fmt.Errorf("%s belongs to another user", dir)
		case opened.Mode().Perm()&0o077 != 0:
			err = fmt.Errorf("%s is open to group or others (mode %04o): check its content, then chmod it to 0700", dir, opened.Mode().Perm())
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// renewed opens the directory again if err says that old was removed, for example by a program that clears temporary
// directories. Otherwise blobs could not be written any more. Lost files are removed from the usage at the next Sweep. It
// reports whether the directory was replaced.
func (s *Store) renewed(old *os.Root, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrClosed) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case s.root.Load() != old:
		return true
	}
	opened, err := old.Stat(".")
	if named, lerr := os.Lstat(s.dir); err == nil && lerr == nil && os.SameFile(opened, named) {
		return false
	}
	fresh, err := openPrivate(s.dir)
	if err != nil {
		return false
	}
	s.root.Store(fresh)
	_ = old.Close() // it is empty
	return true
}

// Close closes the store; blobs stay. Open readers and writers still work, and must be closed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	errs := []error{s.root.Load().Close()}
	for _, d := range s.shares {
		errs = append(errs, d.root.Close())
	}
	return errors.Join(errs...)
}

// Usage returns what counts in the quota, including unfinished blobs.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// reserve reserves quota before a write for a process. Its error does not reveal the usage of others.
func (s *Store) reserve(pid int64, files int, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mostFiles, mostBytes := s.limits.DirFiles, s.limits.DirBytes
	if pid != operator {
		mostFiles, mostBytes = mostFiles-mostFiles/reserved, mostBytes-mostBytes/reserved
	}
	switch {
	case s.closed:
		return errClosed()
	case files > 0 && s.used.Files+files > mostFiles:
		return full("the directory has the maximum number of blobs, %d", mostFiles)
	case s.used.Bytes+bytes > mostBytes:
		return full("all blobs may have %d bytes, and %d more do not fit", mostBytes, bytes)
	case pid != operator && s.held[pid]+bytes > s.limits.Share:
		return full("the blobs of process %d may have %d bytes, and %d more do not fit", pid, s.limits.Share, bytes)
	case pid != operator && bytes > 0 && !hasRoom(s.dir, bytes):
		return full("the disk that holds the blobs is nearly full, and the rest is the operator's")
	}
	s.used.Files += files
	s.used.Bytes += bytes
	s.charge(pid, bytes)
	return nil
}

func (s *Store) unreserve(pid int64, files int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Files -= files
	s.used.Bytes -= bytes
	s.charge(pid, -bytes)
}

// charge counts bytes of a process. The caller holds the lock.
func (s *Store) charge(pid, bytes int64) {
	if s.held[pid] += bytes; s.held[pid] == 0 {
		delete(s.held, pid)
	}
}

// learn adds a file to the usage, or updates its size. The caller holds the lock.
func (s *Store) learn(path string, size int64, at time.Time) {
	old, known := s.entries[path]
	if !known {
		s.used.Files++
		old.at = at
	}
	s.used.Bytes += size - old.size
	s.charge(old.pid, size-old.size)
	old.size = size
	s.entries[path] = old
}

// forget removes a file from the usage. The caller holds the lock.
func (s *Store) forget(path string) {
	if e, known := s.entries[path]; known {
		s.used.Files--
		s.used.Bytes -= e.size
		s.charge(e.pid, -e.size)
		delete(s.entries, path)
	}
}

// hold prevents the removal of a blob until release.
func (s *Store) hold(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	s.uses[path]++
	return nil
}

// release ends a hold, and restarts the age of the blob.
func (s *Store) release(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[path]--; s.uses[path] == 0 {
		delete(s.uses, path)
	}
	if e, known := s.entries[path]; known {
		e.at = s.now()
		s.entries[path] = e
	}
}

func errClosed() *fault.Fault {
	return fault.KernelStopping.New("the kernel is shutting down")
}

package blob

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// folder is the open directory of an origin. That of the kernel's own origin is the root of the store.
type folder struct {
	*os.Root
	shared  bool
	foreign bool // its files belong to owner, which may be another user than that of this process
	owner   int
}

// user returns the user that must own the files of the folder.
func (f folder) user() int {
	if f.foreign {
		return f.owner
	}
	return os.Geteuid()
}

func (f folder) close() {
	if !f.shared {
		_ = f.Root.Close() // nothing was written to it
	}
}

// openFolder opens a folder of the directory, which must not be a symbolic link.
func (s *Store) openFolder(name string) (folder, error) {
	if name == "" {
		return folder{Root: s.root.Load(), shared: true}, nil
	}
	above := s.root.Load()
	root, err := above.OpenRoot(name)
	if err != nil {
		return folder{}, escaped(err)
	}
	// A link would have been followed, to the directory of another origin.
	opened, err := root.Stat(".")
	named, lerr := above.Lstat(name)
	if err = errors.Join(err, lerr); err == nil && (!named.IsDir() || !os.SameFile(opened, named) || !ours(opened)) {
		err = foreign()
	}
	if err != nil {
		return folder{}, errors.Join(err, root.Close())
	}
	return folder{Root: root}, nil
}

// file opens a file of the folder for reading. It checks the open file instead of the name, so that the file cannot be
// swapped in between. A file that the store has written must have the recorded identity.
func (f folder) file(name string, known identity, wait time.Duration) (*os.File, fs.FileInfo, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise a pipe would block until it has a writer
	if err != nil {
		return nil, nil, escaped(err)
	}
	var info fs.FileInfo
	if known == (identity{}) {
		info, err = f.patiently(file, name, wait)
	} else if info, err = file.Stat(); err == nil && identify(info) != known {
		err = foreign()
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// escaped converts an error of os.Root, for a link that leads out, a loop of links, or a file that cannot be opened, to a
// refusal.
func escaped(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	return foreign()
}

// Reader reads one blob. It must be closed.
type Reader struct {
	rest  io.LimitedReader // bounded by the size at Open
	size  int64
	close func() error
}

// Size returns the blob's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) { return r.rest.Read(p) }

// Close closes the blob. It may be called more than once.
func (r *Reader) Close() error { return r.close() }

// Open opens the blob that a reference of the origin names (MESSAGE 4.3.2). Errors wrap a fault if clients may see them:
// BlobNotFound for a missing blob or another origin's, BlobForbidden for a file outside of the directory or one that is not
// a regular file of this user, BlobInvalid, BlobTooLarge, and BlobChanging for a file that is still being written. Opening
// a file that another program has just written takes about 25 ms.
func (s *Store) Open(origin string, p schema.BlobPointer) (*Reader, error) {
	in, name, err := s.parse(origin, p)
	if err != nil {
		return nil, err
	}
	at := path.Join(in, name)
	if err := s.hold(at); err != nil {
		return nil, err
	}
	root := s.root.Load()
	r, err := s.openIn(in, name)
	if s.renewed(root, err) { // its writer may have created the directory again
		r, err = s.openIn(in, name)
	}
	if err != nil {
		s.release(at)
		return nil, explain("open blob", err)
	}
	closeFile := r.close
	r.close = sync.OnceValue(func() error {
		s.release(at)
		return closeFile()
	})
	return r, nil
}

func (s *Store) openIn(in, name string) (*Reader, error) {
	dir, err := s.openFolder(in)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	s.mu.Lock()
	known := s.entries[path.Join(in, name)].id
	s.mu.Unlock()
	r, err := s.reader(dir, name, known)
	if err == nil {
		s.mu.Lock()
		s.learn(path.Join(in, name), r.size, s.now())
		s.mu.Unlock()
	}
	return r, err
}

// reader opens a file of a folder, if it is not longer than a blob may be.
func (s *Store) reader(dir folder, name string, known identity) (*Reader, error) {
	f, info, err := dir.file(name, known, s.settle)
	if err != nil {
		return nil, err
	}
	if info.Size() > s.limits.FileBytes {
		return nil, errors.Join(tooLarge("the blob", s.limits.FileBytes), f.Close())
	}
	return &Reader{rest: io.LimitedReader{R: f, N: info.Size()}, size: info.Size(), close: f.Close}, nil
}

// Read returns the content that a process's reference with the scheme file or data names. The error for more than most
// bytes is BlobTooLarge; other errors are those of OpenFor and Data. The caller must fetch a reference with the scheme
// https itself.
func (s *Store) Read(pid int64, origin string, p schema.BlobPointer, most int64) ([]byte, error) {
	switch p.Scheme {
	case "data":
		_, data, err := Data(p, most)
		return data, err
	case "https":
		return nil, invalid("a reference of the scheme https must be fetched first")
	}
	r, err := s.OpenFor(pid, origin, p)
	if err != nil {
		return nil, err
	}
	if r.Size() > most {
		return nil, errors.Join(tooLarge("what the reference names", most), r.Close())
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// settleTime is longer than the resolution of a file system's times: if a file was changed longer ago, every further change
// shows in its ctime.
const settleTime = 25 * time.Millisecond

// identity distinguishes a file from all others, independent of its names. The zero identity is no file.
type identity struct{ dev, ino uint64 }

// stat returns the system's information about a file.
func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

func identify(info fs.FileInfo) identity {
	return identity{uint64(stat(info).Dev), stat(info).Ino}
}

// ours reports whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool { return int(stat(info).Uid) == os.Geteuid() }

// single reports whether a file is a regular file of the user with exactly one hard link.
func single(info fs.FileInfo, user int) bool {
	return info.Mode().IsRegular() && int(stat(info).Uid) == user && stat(info).Nlink == 1
}

// changed returns the time at which a file was last written, linked or unlinked. No program can set it.
func changed(info fs.FileInfo) time.Time {
	at := ctime(stat(info))
	return time.Unix(at.Unix())
}

// errYoung is the error for a file that has changed too recently to decide whether it is being swapped.
var errYoung = errors.New("changed just now")

// judge reports whether the open file is the one at the name, and has no other name. Checking both is not sufficient: a
// program that links and unlinks repeatedly can present one link when the links are counted, and another user's file when
// the name is checked. Each link changes the ctime, so an old ctime that is the same before and after proves that all
// checks saw one state.
func (f folder) judge(file *os.File, name string) (fs.FileInfo, error) {
	start := time.Now()
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	named, err := f.Lstat(name)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return after, agree(f.user(), start, before, named, after)
}

// agree compares the states since start: of the open file, of the name, and of the open file again.
func agree(user int, start time.Time, before, named, after fs.FileInfo) error {
	switch {
	case !single(before, user), !single(after, user), !os.SameFile(before, named):
		return foreign()
	case start.Sub(changed(before)) <= settleTime, !changed(after).Equal(changed(before)):
		return errYoung
	}
	return nil
}

// patiently is judge, with one retry after a wait if the file has just changed.
func (f folder) patiently(file *os.File, name string, wait time.Duration) (fs.FileInfo, error) {
	info, err := f.judge(file, name)
	if err == errYoung && wait > 0 { //nolint:errorlint // judge returns this value unwrapped
		time.Sleep(wait)
		info, err = f.judge(file, name)
	}
	if err == errYoung { //nolint:errorlint // as above
		err = fault.BlobChanging.New("the file that the reference names is being changed: wait until it is complete, then try again")
	}
	return info, err
}

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
)

// folder is an origin's, opened. That of the kernel's own origin is the store's root.
type folder struct {
	*os.Root
	shared  bool
	foreign bool // its files belong to owner, who may be another user than we are
	owner   int
}

// user is whose the files of the folder must be.
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

// folder opens a folder of the directory, which must be no link to another.
func (s *Store) folder(name string) (folder, error) {
	if name == "" {
		return folder{Root: s.root.Load(), shared: true}, nil
	}
	above := s.root.Load()
	root, err := above.OpenRoot(name)
	if err != nil {
		return folder{}, escaped(err)
	}
	// It followed a link, if there was one, to any folder of the directory: another origin's.
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

// file opens a file of the folder for reading, if it is one that counts. Nothing is decided before it is open: what is
// judged is what was opened. A file that the store has written is known by its identity, and may be no other.
func (f folder) file(name string, known identity, wait time.Duration) (*os.File, fs.FileInfo, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for who writes to it
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

// escaped turns what os.Root says of a link that leads out, of a loop of links or of a file that cannot be opened as one into
// a refusal.
func escaped(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	return foreign()
}

// Reader reads one blob. It must be closed.
type Reader struct {
	f     *os.File
	rest  io.LimitedReader // no more than the blob had when it was opened
	size  int64
	close func() error
}

// Size is the blob's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// Read reads on.
func (r *Reader) Read(p []byte) (int, error) { return r.rest.Read(p) }

// Close lets go of the blob. It may be called more than once.
func (r *Reader) Close() error { return r.close() }

// Open opens the blob that a reference of the origin names (MESSAGE 4.3.2). Errors wrap a fault where a client may see
// them: BlobNotFound for what is not there or another origin's, BlobForbidden for what lies elsewhere or is no regular file of
// ours, BlobInvalid, BlobTooLarge, and BlobChanging for a file that somebody is still writing. A file that another program has put there a moment ago takes some 25 ms.
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
	r, err := s.open(in, name)
	if s.renewed(root, err) { // its writer has made the directory again, perhaps
		r, err = s.open(in, name)
	}
	if err != nil {
		s.release(at)
		return nil, explain("open blob", err)
	}
	r.close = sync.OnceValue(func() error {
		s.release(at)
		return r.f.Close()
	})
	return r, nil
}

func (s *Store) open(in, name string) (*Reader, error) {
	dir, err := s.folder(in)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	s.mu.Lock()
	known := s.entries[path.Join(in, name)].id
	s.mu.Unlock()
	f, info, err := dir.file(name, known, s.settle)
	if err != nil {
		return nil, err
	}
	if info.Size() > s.limits.FileBytes {
		return nil, errors.Join(tooLarge("the blob", s.limits.FileBytes), f.Close())
	}
	s.mu.Lock()
	s.learn(path.Join(in, name), info.Size(), s.now())
	s.mu.Unlock()
	return &Reader{f: f, size: info.Size(), rest: io.LimitedReader{R: f, N: info.Size()}}, nil
}

// Retain keeps a blob from being removed until release is called, which may be done more than once. Errors are Open's.
func (s *Store) Retain(origin string, p schema.BlobPointer) (release func(), err error) {
	r, err := s.Open(origin, p)
	if err != nil {
		return nil, err
	}
	in, name, _ := s.parse(origin, p) // Open has parsed it
	if err := errors.Join(s.hold(path.Join(in, name)), r.Close()); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.release(path.Join(in, name)) }), nil
}

// Read returns what a reference of the scheme file or data names, at most so many bytes of it: more is BlobTooLarge. Other
// errors are those of Open and Data. What lies behind an https reference is not the store's.
func (s *Store) Read(origin string, p schema.BlobPointer, most int64) ([]byte, error) {
	switch p.Scheme {
	case "data":
		_, data, err := Data(p, most)
		return data, err
	case "https":
		return nil, invalid("a reference of the scheme https must be fetched first")
	}
	r, err := s.Open(origin, p)
	if err != nil {
		return nil, err
	}
	return ReadAll(r, most)
}

// ReadAll reads a blob of at most so many bytes, more is BlobTooLarge, and closes it.
func ReadAll(r *Reader, most int64) ([]byte, error) {
	if r.Size() > most {
		return nil, errors.Join(tooLarge("what the reference names", most), r.Close())
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

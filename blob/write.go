package blob

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Blob is a blob that was written.
type Blob struct {
	Pointer schema.BlobPointer
	Size    int64
	Digest  [sha256.Size]byte // SHA-256 of what was written
}

// Writer writes one blob. Commit or Abort must end it. It is not safe for concurrent use.
type Writer struct {
	store *Store
	pid   int64 // of the process that it is for
	dir   folder
	in    string // name of the folder
	name  string
	f     *os.File
	sum   hash.Hash
	size  int64
	err   error // why the writer ended
}

// errEnded is the state of a writer after Commit or Abort.
var errEnded = errors.New("the blob was ended")

// Create creates a blob of an origin for a process. The error is BlobNoRoom if the quota is exhausted.
func (s *Store) Create(pid int64, origin string) (*Writer, error) {
	return s.createFile(pid, origin, "")
}

func (s *Store) createFile(pid int64, origin, suffix string) (*Writer, error) {
	if err := s.reserve(pid, 1, 0); err != nil {
		return nil, err
	}
	w := &Writer{store: s, pid: pid, in: s.folderOf(origin), name: rand.Text() + suffix, sum: sha256.New()}
	root := s.root.Load()
	err := w.open()
	if s.renewed(root, err) {
		err = w.open()
	}
	if err != nil {
		s.unreserve(pid, 1, 0)
		return nil, explain("create blob", err)
	}
	return w, nil
}

func (w *Writer) open() error {
	s := w.store
	if w.in != "" {
		if err := s.root.Load().Mkdir(w.in, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	var err error
	if w.dir, err = s.openFolder(w.in); err != nil {
		return err
	}
	s.mu.Lock()
	s.writing[w.temp()] = true
	s.mu.Unlock()
	if w.f, err = w.dir.OpenFile(newPrefix+w.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		w.ended()
		return err
	}
	return nil
}

func (w *Writer) temp() string { return path.Join(w.in, newPrefix+w.name) }

// Write appends to the blob. After an error the blob cannot be committed. The error is BlobNoRoom for a blob that exceeds
// its limit, an exhausted quota and a full disk.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.writeBounded(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

func (w *Writer) writeBounded(p []byte) (int, error) {
	if most := w.store.limits.FileBytes; w.size+int64(len(p)) > most {
		return 0, fault.BlobNoRoom.New("a blob holds at most %d bytes: ask for less, or raise the limit of the kernel", most)
	}
	if err := w.store.reserve(w.pid, 0, int64(len(p))); err != nil {
		return 0, err
	}
	w.size += int64(len(p)) // Abort releases the unused part with the rest
	n, err := w.f.Write(p)
	w.sum.Write(p[:n])
	return n, explain("write blob", err)
}

// Commit completes the blob and gives it its name, after which references can name it. A process that sees a directory of
// its own sees the blob there. If it fails, or a Write has failed, no file is left.
func (w *Writer) Commit() (Blob, error) {
	if w.err != nil {
		err := w.err
		w.Abort()
		return Blob{}, err
	}
	s := w.store
	b := Blob{Pointer: s.pointer(w.in, w.name), Size: w.size}
	w.sum.Sum(b.Digest[:0])
	info, err := w.f.Stat()
	if err = errors.Join(err, w.f.Close()); err == nil {
		err = w.publish(identify(info))
	}
	if err != nil {
		w.err = err
		w.Abort()
		return Blob{}, explain("commit blob", err)
	}
	w.err = errEnded
	w.dir.close()
	at := path.Join(w.in, w.name)
	if err := s.give(w.pid, at); err != nil {
		s.discard(at)
		return Blob{}, explain("show blob", err)
	}
	return b, nil
}

// publish renames the file and adds it to the usage in one step for Sweep.
func (w *Writer) publish(id identity) error {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if err := w.dir.Rename(newPrefix+w.name, w.name); err != nil {
		return err
	}
	delete(s.writing, w.temp())
	s.entries[path.Join(w.in, w.name)] = entry{size: w.size, at: s.now(), id: id, pid: w.pid}
	return nil
}

// discard removes a blob that no caller knows.
func (s *Store) discard(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.root.Load().Remove(at) // a sweep removes the file later if this fails
	s.forget(at)
}

// Abort discards the blob. After Commit or Abort it does nothing.
func (w *Writer) Abort() {
	if w.err == errEnded { //nolint:errorlint // a value that is never wrapped
		return
	}
	w.err = errEnded
	_ = w.f.Close()                      // the blob is discarded
	_ = w.dir.Remove(newPrefix + w.name) // a sweep removes the file later if this fails
	w.store.unreserve(w.pid, 1, w.size)
	w.ended()
}

// ended closes the folder, and records that the name is no longer being written.
func (w *Writer) ended() {
	w.dir.close()
	w.store.mu.Lock()
	delete(w.store.writing, w.temp())
	w.store.mu.Unlock()
}

// Put writes a blob of an origin from r, for a process. The name of a text shows that it is one: see
// schema.BlobPointer.Text.
func (s *Store) Put(pid int64, origin string, text bool, r io.Reader) (Blob, error) {
	suffix := ""
	if text {
		suffix = schema.TextSuffix
	}
	w, err := s.createFile(pid, origin, suffix)
	if err != nil {
		return Blob{}, err
	}
	defer w.Abort()
	if _, err := io.Copy(w, r); err != nil {
		return Blob{}, err
	}
	return w.Commit()
}

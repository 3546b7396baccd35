package steps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/promptware-os/pwos/journal"
)

// Snapshot is the files of a store as they were at one moment. Close must follow.
type Snapshot struct {
	Files  []SnapshotFile
	Sealed bool // some contents need the key

	open     []journal.File
	log      *log
	contents journal.File
	packed   int64 // bytes of them
}

// SnapshotFile is a file of a store, up to a size: what follows is not part of the snapshot.
type SnapshotFile struct {
	Name string
	Size int64
	io.ReaderAt
}

// Capture opens the files of the store in a directory, which may be open elsewhere, and go on. It returns nil if the tree was not read yet.
//
// It needs no lock. In a generation, contents and steps are only appended, and contents are durable before the record that needs them. So
// the index is read first, then the steps, which end with the last whole record, and the contents end where both say that they were
// durable. If the next generation removes a file before it is open, Capture begins again; open files stay readable.
func Capture(fsys journal.FS, dir string) (*Snapshot, error) {
	for try := 1; ; try++ {
		c := new(Snapshot)
		whole, err := c.capture(fsys, dir)
		if whole {
			return c, nil
		}
		err = errors.Join(err, c.Close())
		if gone := errors.Is(err, fs.ErrNotExist); gone && try < 10 {
			continue
		}
		if err != nil {
			err = fmt.Errorf("copy the store %s: %w", dir, err)
		}
		return nil, err
	}
}

// capture returns false without an error if there is nothing to be copied yet.
func (c *Snapshot) capture(fsys journal.FS, dir string) (bool, error) {
	s := &Store{dir: dir, fsys: fsys}
	if known, err := s.readGeneration(); err != nil || !known {
		return false, err
	}
	index, err := readFile(fsys, s.file("index"))
	if err != nil {
		return false, err
	}
	if index == nil { // not yet, or not any more
		again := &Store{dir: dir, fsys: fsys}
		if _, err := again.readGeneration(); err != nil || again.generation == s.generation {
			return false, err
		}
		return false, fs.ErrNotExist
	}
	records, err := c.openFile(fsys, s.file("log"))
	if err != nil {
		return false, err
	}
	if c.contents, err = c.openFile(fsys, s.file("content")); err != nil {
		return false, err
	}
	c.log = &log{file: records}
	if _, err := c.log.scan(); err != nil {
		return false, err
	}
	head, known := indexOf(index, s.generation)
	c.packed = head.packed
	if !known { // it is damaged, and made again where the store is opened
		if c.packed, err = c.contents.Size(); err != nil {
			return false, err
		}
	}
	for _, m := range c.log.marks {
		c.packed = max(c.packed, m.packed)
	}
	c.Files = []SnapshotFile{
		TextFile("current", fmt.Appendf(nil, "%d\n", s.generation)), TextFile(filepath.Base(s.file("index")), index),
		{filepath.Base(s.file("log")), c.log.size, records},
		{filepath.Base(s.file("content")), c.packed, c.contents},
	}
	c.Sealed, err = anySealed(c.contents, c.packed)
	return err == nil, err
}

// TextFile returns a file that is in memory.
func TextFile(name string, text []byte) SnapshotFile {
	return SnapshotFile{name, int64(len(text)), bytes.NewReader(text)}
}

func (c *Snapshot) openFile(fsys journal.FS, path string) (journal.File, error) {
	f, err := fsys.Open(path)
	if err == nil {
		c.open = append(c.open, f)
	}
	return f, err
}

// Close closes the files.
func (c *Snapshot) Close() (err error) {
	for _, f := range c.open {
		err = errors.Join(err, f.Close())
	}
	c.open = nil
	return err
}

// anySealed reports whether a frame of contents, up to a size, is sealed.
func anySealed(contents io.ReaderAt, size int64) (sealed bool, err error) {
	return sealed, frames(contents, size, func(_ int64, h *header) { sealed = sealed || h.sealed })
}

// frames calls do with the headers of frames, up to a size. What a crash has left incomplete ends them.
func frames(contents io.ReaderAt, size int64, do func(at int64, h *header)) error {
	for at := int64(0); at < size; {
		h, length, err := readHeader(io.NewSectionReader(contents, at, size-at))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errTorn) {
			return nil
		}
		if err != nil {
			return err
		}
		do(at, &h)
		at += length + int64(h.packed)
	}
	return nil
}

// Sealed reports whether the store in a directory has contents that only its key opens.
func Sealed(dir string) (_ bool, err error) {
	s := &Store{dir: dir, fsys: journal.OSFS{}}
	if known, err := s.readGeneration(); err != nil || !known {
		return false, err
	}
	f, err := s.fsys.Open(s.file("content"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	return anySealed(f, size)
}

package steps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/journal"
)

// replaceFile replaces a file, durably: a reader finds the old text or the new one, also after a crash.
func replaceFile(fsys journal.FS, dir, name string, text []byte) (err error) {
	path := filepath.Join(dir, name)
	file, err := fsys.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = file.WriteAt(text, 0)
	if err = errors.Join(err, file.Truncate(int64(len(text))), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := fsys.Rename(path+".new", path); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// readFile returns the text of a file; nil if there is none.
func readFile(fsys journal.FS, path string) (text []byte, err error) {
	file, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	text = make([]byte, size)
	if _, err := file.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text, nil
}

// saveIndex writes the tree as it was at the last step.
func (s *Store) saveIndex() error {
	var e encoder
	e.number(s.generation)
	e.number(s.log.next() - 1)
	e.signed(s.pack.synced)
	paths := make([]string, 0, len(s.dirs))
	for path := range s.dirs {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	e.number(uint64(len(paths)))
	for _, path := range paths {
		e.text(path)
		items := s.dirs[path]
		e.number(uint64(len(items)))
		for i := range items {
			it := &items[i]
			e.text(it.name)
			e.state(it.state)
			e.flags(it.young, it.linked)
			e.number(it.stamp.ino)
			e.signed(it.stamp.size)
			e.signed(it.stamp.ctime)
			e.signed(it.stamp.mtime)
			e.number(uint64(it.stamp.mode))
		}
	}
	return replaceFile(s.fsys, s.dir, filepath.Base(s.file("index")), seal(e.b))
}

// indexed is the beginning of an index, and what follows it.
type indexed struct {
	seq    uint64 // the last step
	packed int64  // bytes of contents that were durable
	decoder
}

// indexOf returns false if the text is not the index of a generation.
func indexOf(text []byte, generation uint64) (x indexed, ok bool) {
	record, _, err := unseal(text)
	if err != nil {
		return x, false
	}
	x.b = record
	same := x.number() == generation
	x.seq, x.packed = x.number(), x.signed()
	return x, same && !x.bad
}

// loadIndex reads the tree as it was, up to the last step of the log, and how many bytes of contents were durable then. It returns false if
// that is not known.
func (s *Store) loadIndex() (known bool, packed int64, err error) {
	text, err := readFile(s.fsys, s.file("index"))
	if err != nil {
		return false, 0, err
	}
	head, known := indexOf(text, s.generation)
	if !known {
		return false, 0, nil // there is none, or it is damaged: the tree is read again
	}
	d, packed := head.decoder, head.packed
	for range d.count() {
		path := d.text()
		items := make([]item, 0, d.count())
		for range cap(items) {
			it := item{name: d.text(), state: d.state()}
			flags := d.number()
			it.young, it.linked = d.flag(flags, 0), d.flag(flags, 1)
			it.stamp = stamp{d.number(), d.signed(), d.signed(), d.signed(), uint32(d.number())}
			items = append(items, it)
		}
		if d.bad {
			clear(s.dirs)
			return false, 0, nil
		}
		s.dirs[path] = items
	}
	for _, m := range s.log.marks {
		if m.seq <= head.seq {
			continue
		}
		step, err := s.log.read(m)
		if err != nil {
			return false, 0, err
		}
		packed = max(packed, m.packed)
		for _, c := range step.Changes {
			s.replay(c)
		}
	}
	return true, packed, nil
}

// replay makes a change in what is known of the tree. The next walk reads the file again.
func (s *Store) replay(c Change) {
	dir, name := split(c.Path)
	items := s.dirs[dir]
	i, found := slices.BinarySearchFunc(items, name, byName)
	switch {
	case c.After.Exists() && found:
		items[i] = item{name: name, state: c.After, young: true}
	case c.After.Exists():
		items = slices.Insert(items, i, item{name: name, state: c.After, young: true})
	case found:
		items = slices.Delete(items, i, i+1)
	}
	s.dirs[dir] = items
	if c.After.IsDir() {
		if s.dirs[c.Path] == nil {
			s.dirs[c.Path] = []item{}
		}
	} else if c.Before.IsDir() {
		delete(s.dirs, c.Path)
	}
}

func byName(it item, name string) int {
	switch {
	case it.name < name:
		return -1
	case it.name > name:
		return 1
	}
	return 0
}

// state returns what is known of a path.
func (s *Store) state(path string) State {
	if path == "" {
		return State{Mode: unix.S_IFDIR}
	}
	it, _ := s.item(path)
	return it.state
}

// item returns what is known of a path, and false if nothing is.
func (s *Store) item(path string) (item, bool) {
	dir, name := split(path)
	items := s.dirs[dir]
	if i, found := slices.BinarySearchFunc(items, name, byName); found {
		return items[i], true
	}
	return item{}, false
}

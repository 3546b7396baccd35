package steps

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A content that an undo restores is written under a name of its own beside its place, and renamed once all are on disk. The store has a
// list of these names meanwhile, so that those that an undo has left which was cut off are removed when the tree is read again.
const (
	unfinished     = ".pwos-undo-"
	unfinishedList = "undoing"
)

// announce gives each content that is written a name, and stores the list.
func (w *writer) announce(paths []string) error {
	var e encoder
	for _, path := range paths {
		if to := w.want[path]; to.Exists() && !to.IsDir() {
			dir, _ := split(path)
			w.names[path] = unfinished + rand.Text()
			e.text(join(dir, w.names[path]))
		}
	}
	if len(w.names) == 0 {
		return nil
	}
	return replaceFile(w.fsys, w.dir, unfinishedList, seal(e.b))
}

// announced removes the list, unless one of the names may still be there. A list that stays names nothing that is there.
func (w *writer) announced() {
	if len(w.names) > 0 && len(w.ready) == 0 {
		_ = w.fsys.Remove(filepath.Join(w.dir, unfinishedList))
	}
}

// sweep removes what an undo has left that was cut off.
func (s *Store) sweep() (err error) {
	list := filepath.Join(s.dir, unfinishedList)
	text, err := readFile(s.fsys, list)
	if err != nil || text == nil {
		return err
	}
	record, _, err := unseal(text)
	if err != nil {
		return s.fsys.Remove(list) // it was cut off before it was stored, and so before anything was written
	}
	root, err := openRoot(s.root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for d := (decoder{b: record}); len(d.b) > 0 && !d.bad; {
		parent, name := split(d.text())
		dir, err := openPath(root, parent)
		if err == nil {
			err = errors.Join(unix.Unlinkat(int(dir.Fd()), name, 0), dir.Close())
		}
		if err != nil && !isGone(err) && !errors.Is(err, fs.ErrPermission) { // where the mode of the directory forbids it, it stays
			return fmt.Errorf("remove what an undo has left: %w", err)
		}
	}
	return s.fsys.Remove(list)
}

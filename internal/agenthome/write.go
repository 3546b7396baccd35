package agenthome

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/internal/rmtree"
)

// write writes a file. Programs that run with the same home may write it too, and a program that does so at each of a few tries
// wants that the start fails.
func (h *Home) write(name string, f file) (err error) {
	for range 8 {
		if err = h.writeOnce(name, f); err == nil {
			break
		}
	}
	return err
}

// writeOnce writes a file. One with the same content stays, and one with another is overwritten in place: programs that run with the
// same home may have it mounted.
func (h *Home) writeOnce(name string, f file) error {
	if err := h.parents(name, true); err != nil {
		return err
	}
	if info, err := h.root.Lstat(name); err == nil && info.Mode().IsRegular() && h.fill(name, 0, f) == nil {
		return nil
	}
	if err := rmtree.Below(h.root, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := h.fill(name, os.O_CREATE|os.O_EXCL, f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// errNoFile says that something else than a file with one name is in its place.
var errNoFile = errors.New("no file with one name")

// fill gives a file its content, however long it is. An agent that runs may replace it meanwhile by a FIFO, which must not block.
func (h *Home) fill(name string, flags int, f file) error {
	text := f.text
	file, err := h.root.OpenFile(name, flags|os.O_RDWR|syscall.O_NONBLOCK, plainMode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || links(info) != 1) {
		err = errNoFile
	}
	if err == nil && (info.Mode().Perm()^f.mode)&0o111 != 0 {
		err = file.Chmod(f.mode)
	}
	if err == nil && info.Size() == int64(len(text)) {
		old := make([]byte, len(text))
		if _, readErr := file.ReadAt(old, 0); readErr == nil && bytes.Equal(old, text) {
			return file.Close()
		}
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(text, 0)
	}
	return errors.Join(err, file.Close())
}

// parents removes what is no directory above a name, such as a link to another place, and makes the directories if they should be there.
func (h *Home) parents(name string, make bool) error {
	for at, rest := "", path.Dir(name); rest != "." && rest != ""; {
		var first string
		first, rest, _ = strings.Cut(rest, "/")
		at = path.Join(at, first)
		info, err := h.root.Lstat(at)
		switch {
		case err == nil && info.IsDir():
			const whole = 0o700
			if info.Mode().Perm()&whole != whole {
				err = h.root.Chmod(at, whole)
			}
		case err == nil:
			err = h.root.Remove(at)
			if err == nil && make {
				err = h.root.Mkdir(at, 0o700)
			}
		case errors.Is(err, fs.ErrNotExist) && make:
			err = h.root.Mkdir(at, 0o700)
		case errors.Is(err, fs.ErrNotExist):
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) { // an agent with the same home may change it
			return fmt.Errorf("renew home: %w", err)
		}
	}
	return nil
}

// removeExcept removes a tree, except files that are wanted there: programs that start or run with the same home read them.
func (h *Home) removeExcept(name string, want map[string]file) error {
	if _, keep := want[name]; keep {
		return nil
	}
	info, err := h.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	holds := func(file string) bool { return strings.HasPrefix(file, name+"/") }
	if err != nil || !info.IsDir() || !slices.ContainsFunc(slices.Collect(maps.Keys(want)), holds) {
		return rmtree.Below(h.root, name)
	}
	dir, err := h.root.OpenFile(name, syscall.O_DIRECTORY, 0) // which does not wait, if an agent replaces it by a FIFO
	if err != nil {                                           // or an agent has taken the rights to it
		return rmtree.Below(h.root, name)
	}
	const most = 1000 // names in memory; no program leaves as many
	entries, err := dir.ReadDir(most)
	if err = errors.Join(err, dir.Close()); len(entries) == most || err != nil && !errors.Is(err, io.EOF) {
		return rmtree.Below(h.root, name)
	}
	err = nil
	for _, entry := range entries {
		err = errors.Join(err, h.removeExcept(path.Join(name, entry.Name()), want))
	}
	return err
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

package agenthome

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/internal/rmtree"
)

// write writes a file. One with the same content stays, and one with another is overwritten in place: programs that run with the
// same home may have it mounted.
func (h *Home) write(name string, text []byte) error {
	if err := h.parents(name, true); err != nil {
		return err
	}
	if info, err := h.root.Lstat(name); err == nil && info.Mode().IsRegular() && h.fill(name, 0, text) == nil {
		return nil
	}
	if err := rmtree.Below(h.root, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := h.fill(name, os.O_CREATE|os.O_EXCL, text); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// errNoFile says that something else than a file with one name is in its place.
var errNoFile = errors.New("no file with one name")

// fill gives a file its content, however long it is. An agent that runs may replace it meanwhile by a FIFO, which must not block.
func (h *Home) fill(name string, flags int, text []byte) error {
	file, err := h.root.OpenFile(name, flags|os.O_RDWR|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || links(info) != 1) {
		err = errNoFile
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

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

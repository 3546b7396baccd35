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
)

// write writes a file. One with the same content stays, and one with another is overwritten in place: programs that run with the
// same home may have it mounted.
func (h *Home) write(name string, text []byte) error {
	if err := h.parents(name, true); err != nil {
		return err
	}
	if info, err := h.root.Lstat(name); err == nil && info.Mode().IsRegular() && links(info) == 1 {
		if old, err := h.root.ReadFile(name); err == nil && bytes.Equal(old, text) {
			return nil
		}
		if h.fill(name, os.O_WRONLY|os.O_TRUNC, text) == nil {
			return nil
		}
	}
	if err := remove(h.root, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := h.fill(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, text); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (h *Home) fill(name string, flags int, text []byte) error {
	file, err := h.root.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
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

// remove removes a tree, also if an agent has taken the rights to its directories.
func remove(root *os.Root, name string) error {
	if root.RemoveAll(name) == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = root.Chmod(at, 0o700) // before WalkDir reads it
		}
		return nil
	})
	return root.RemoveAll(name)
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

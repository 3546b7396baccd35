package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var (
	// errPrivate refuses a working directory in which an agent could rewrite the journal, or replace the kernel.
	errPrivate = errors.New("the working directory is in one of the kernel's own directories, or contains one: choose another")

	// errLink refuses a working directory that others can replace by a link.
	errLink = errors.New("the working directory is reached through a symbolic link: name the directory that the link leads to")
)

// Apart refuses a working directory, absolute and clean, that overlaps one of the kernel's own directories, or through which the path to
// a file leads that the kernel trusts. It is checked before
// each start, since the directory may have changed. A sandbox follows no link, so a later link has no effect.
func Apart(dir string, private, trusted []string) error {
	switch place, err := filepath.EvalSymlinks(dir); {
	case err != nil:
		return fmt.Errorf("find working directory: %w", ErrNotFound)
	case place != dir:
		return errLink
	}
	for _, one := range private {
		own, err := filepath.EvalSymlinks(one)
		if err != nil {
			return fmt.Errorf("find the kernel's own directories: %w", errors.Unwrap(err))
		}
		if within(dir, own) || leadsThrough(one, dir) {
			return errPrivate
		}
	}
	for _, file := range trusted {
		if leadsThrough(file, dir) {
			return fmt.Errorf("the working directory contains %s, which the kernel trusts, or a link to it: choose another", file)
		}
	}
	return nil
}

// Canonical resolves the symlinks in the existing part of a path.
func Canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return real
	}
	return filepath.Join(Canonical(filepath.Dir(path)), filepath.Base(path))
}

// leadsThrough reports whether the resolution of an absolute path passes through dir: dir contains the file, a directory
// above it, or a symbolic link on the path. It is true for a path with a link cycle.
func leadsThrough(path, dir string) bool {
	const most = 255 // links, as for EvalSymlinks
	at, rest := string(filepath.Separator), strings.Split(filepath.Clean(path), string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		if within(next, dir) {
			return true
		}
		target, err := os.Readlink(next)
		if err != nil { // not a link
			at = next
			continue
		}
		if links++; links > most {
			return true
		}
		if filepath.IsAbs(target) {
			at = string(filepath.Separator)
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return false
}

// within reports whether a path is dir, or is in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

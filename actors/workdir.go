package actors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/host"
)

var (
	// errPrivate refuses a working directory in which an agent could rewrite the journal, or take the place of the kernel.
	errPrivate = errors.New("the working directory lies in one of the kernel's own, or holds it: choose another")

	// errLink refuses one that would be another as soon as somebody who may write above it wants that.
	errLink = errors.New("the working directory is reached by a symbolic link: name the directory that it leads to")
)

// apart refuses a working directory, absolute and clean, that is not apart from the kernel's own. It is asked before each
// start of a program: what lies at the path may be another by then. A sandbox follows no link either, so that one which is put
// there afterwards leads nowhere.
func (h *hosting) apart(dir string) error {
	switch place, err := filepath.EvalSymlinks(dir); {
	case err != nil:
		return fmt.Errorf("find working directory: %w", host.ErrNotFound)
	case place != dir:
		return errLink
	}
	for _, private := range h.Private {
		own, err := filepath.EvalSymlinks(private)
		if err != nil {
			return fmt.Errorf("find the kernel's own directories: %w", errors.Unwrap(err))
		}
		if within(dir, own) || leadsThrough(private, dir) {
			return errPrivate
		}
	}
	for _, file := range h.Trusted {
		if leadsThrough(file, dir) {
			return fmt.Errorf("the working directory holds %s, which the kernel trusts, or a link to it: choose another", file)
		}
	}
	return nil
}

// canonical follows the symlinks in a path, as far as it exists.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return real
	}
	return filepath.Join(canonical(filepath.Dir(path)), filepath.Base(path))
}

// leadsThrough reports whether what dir holds has a part in where an absolute path leads: the file itself, a directory above
// it, or a symbolic link on the way. A path that does not end is taken to lead everywhere.
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
		if err != nil { // no link
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

// within reports whether a path is dir, or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

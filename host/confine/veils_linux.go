package confine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Veils are directories of whiteouts that programs share, since the same names are hidden from most of them.
type Veils struct {
	dir string

	mu   sync.Mutex
	made map[[sha256.Size]byte]whiteouts // by the names; without whiteouts if they could not be made
}

// mostVeils bounds the directories. Programs with other names have whiteouts of their own.
const mostVeils = 64

// NewVeils returns veils that are made in a directory, which is removed first.
func NewVeils(dir string) (*Veils, error) {
	v := &Veils{dir: dir, made: make(map[[sha256.Size]byte]whiteouts)}
	if err := errors.Join(v.Close(), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("make veils: %w", err)
	}
	return v, nil
}

// Close removes the directories. No program may run any more, since the names would come back.
func (v *Veils) Close() error {
	if v == nil {
		return nil
	}
	return os.RemoveAll(v.dir)
}

// Share gives the veils of a plan their whiteouts. Where that fails, Enter makes them.
func (v *Veils) Share(p *Plan) {
	if v == nil {
		return
	}
	for i, l := range p.layers {
		if l.kind != veil || len(l.names) == 0 {
			continue
		}
		if dir, links := v.of(l.names); links > 0 {
			p.layers[i].source, p.layers[i].size = dir, links
		}
	}
}

// of returns a directory of whiteouts, and how many it has.
func (v *Veils) of(names []string) (dir string, links int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	hidden, known := v.made[key]
	dir = filepath.Join(v.dir, fmt.Sprintf("%x", key[:8]))
	if known || len(v.made) >= mostVeils {
		return dir, hidden.links
	}
	hidden, err := whiteoutsIn(dir, names)
	for name := range hidden.made { // the umask is that of the whole process
		err = errors.Join(err, unix.Fchmodat(unix.AT_FDCWD, filepath.Join(dir, name), 0o755, 0))
	}
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		hidden.links = 0
	}
	v.made[key] = hidden
	return dir, hidden.links
}

// whole opens the whiteouts that the plan shares. It fails if one has been removed since: each is a link of the first.
func (l layer) whole() (int, error) {
	fd, err := unix.Open(l.source, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstatat(fd, l.names[0], &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && (int64(st.Nlink) != l.size || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0) {
		err = unix.ESTALE
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// whiteouts hide names below the upper directory of an overlay.
type whiteouts struct {
	made  map[string]bool // directories
	first string          // a whiteout, of which the others are links: these cost less than files
	links int64           // how many whiteouts there are
}

// whiteoutsIn makes whiteouts in a new directory.
func whiteoutsIn(dir string, names []string) (w whiteouts, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return w, err
	}
	upper, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return w, err
	}
	defer closeFD(upper)
	w.made = make(map[string]bool)
	for _, name := range names {
		if err := w.add(upper, name); err != nil {
			return w, fmt.Errorf("hide %s: %w", name, err)
		}
	}
	return w, nil
}

// add hides a name, which comes after those that it is in.
func (w *whiteouts) add(upper int, name string) error {
	for i, c := range name {
		if c != '/' || w.made[name[:i]] {
			continue
		}
		if err := unix.Mkdirat(upper, name[:i], 0o755); errors.Is(err, unix.EEXIST) {
			return nil // it is hidden, with all that is in it
		} else if err != nil {
			return err
		}
		w.made[name[:i]] = true
	}
	var err error
	if w.first == "" {
		w.first = name
		err = unix.Mknodat(upper, name, unix.S_IFCHR, 0)
	} else {
		err = unix.Linkat(upper, w.first, upper, name, 0)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil // it is hidden already
	}
	if err == nil {
		w.links++
	}
	return err
}

package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// modeOfNew is that of a directory of which no step knows the mode.
const modeOfNew = unix.S_IFDIR | 0o755

// writer makes a tree what a plan says.
type writer struct {
	*plan
	root  *os.File
	names map[string]string // of new contents until they are renamed, by path
	ready []ready           // new contents that are not in their places yet
	modes map[string]uint32 // of directories, to be set when nothing is written in them any more
	raced []Conflict
}

type ready struct{ dir, temporary, name string }

// write carries out the plan. Contents are written and synced under other names first, and then renamed. It returns what was changed by
// others meanwhile.
func (u *plan) write(ctx context.Context) (_ []Conflict, err error) {
	w := &writer{plan: u, names: make(map[string]string), modes: make(map[string]uint32)}
	if w.root, err = openRoot(u.root); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.root.Close()) }()
	paths := u.paths()
	if err := w.announce(paths); err != nil {
		return nil, err
	}
	defer w.announced()
	for _, path := range slices.Backward(paths) {
		if now, to := u.state(path), u.want[path]; now.Exists() && now.kind() != to.kind() {
			if err := w.each(ctx, path, w.remove); err != nil {
				return w.raced, err
			}
		}
	}
	for _, path := range paths {
		if u.want[path].Exists() {
			if err := w.each(ctx, path, w.make); err != nil {
				return w.raced, errors.Join(err, w.discard())
			}
		}
	}
	if err := syncTree(w.root); err != nil {
		return w.raced, errors.Join(err, w.discard())
	}
	for len(w.ready) > 0 {
		if err := w.each(ctx, join(w.ready[0].dir, w.ready[0].name), w.place); err != nil {
			return w.raced, errors.Join(err, w.discard())
		}
		w.ready = w.ready[1:]
	}
	return w.raced, w.setModes()
}

// each does something with a path in its open directory. A path that was changed meanwhile is a conflict, not an error.
func (w *writer) each(ctx context.Context, path string, do func(dir *os.File, path, name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	parent, name := split(path)
	dir, err := openPath(w.root, parent)
	if err == nil {
		err = errors.Join(do(dir, path, name), dir.Close())
	}
	if isGone(err) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EISDIR) {
		w.raced = append(w.raced, Conflict{Path: path, Why: "it was changed meanwhile"})
		return nil
	}
	return err
}

// unchanged returns errMoved if an entry is not what the plan was made for.
func (w *writer) unchanged(dir *os.File, path, name string) error {
	st, err := statIn(dir, name)
	parent, _ := split(path)
	i, known := slices.BinarySearchFunc(w.dirs[parent], name, byName)
	switch {
	case errors.Is(err, unix.ENOENT) && !known:
		return nil
	case err != nil:
		return err
	case !known || w.dirs[parent][i].state.kind() != uint32(st.Mode)&unix.S_IFMT:
		return errMoved
	case w.dirs[parent][i].state.content() && !stampOf(&st).like(w.dirs[parent][i].stamp):
		return errMoved
	}
	return nil
}

func (w *writer) remove(dir *os.File, path, name string) error {
	if err := w.unchanged(dir, path, name); err != nil {
		return err
	}
	flags := 0
	if w.state(path).IsDir() {
		flags = unix.AT_REMOVEDIR
	}
	return w.writable(dir, path, func() error { return unix.Unlinkat(int(dir.Fd()), name, flags) })
}

// make makes a directory, or writes a content under another name.
func (w *writer) make(dir *os.File, path, name string) error {
	now, to := w.state(path), w.want[path]
	if to.IsDir() {
		w.modes[path] = to.perm()
		if now.IsDir() {
			return nil
		}
		err := w.writable(dir, path, func() error { return unix.Mkdirat(int(dir.Fd()), name, 0o700) })
		if err == nil {
			err = own(dir, name)
		}
		return err
	}
	var in io.Reader
	if now.kind() == to.kind() && now.Ref == to.Ref && to.merged == nil { // only its mode
		if err := w.unchanged(dir, path, name); err != nil || to.isLink() {
			return err
		}
		file, st, err := openFile(dir, name)
		if err != nil {
			return err
		}
		defer file.Close()
		if st.Nlink == 1 {
			return unix.Fchmod(file.fd, to.perm())
		}
		in = file // another name of it keeps its mode
	} else {
		source, err := w.source(to)
		if err != nil {
			return err
		}
		in = source
	}
	temporary := w.names[path]
	err := w.writable(dir, path, func() error {
		if to.isLink() {
			target, err := io.ReadAll(in)
			if err != nil {
				return err
			}
			return unix.Symlinkat(string(target), int(dir.Fd()), temporary)
		}
		return writeFile(dir, temporary, in, to.perm())
	})
	if err == nil && to.isLink() {
		err = own(dir, temporary)
	}
	parent, _ := split(path)
	w.ready = append(w.ready, ready{parent, temporary, name})
	return err
}

func writeFile(dir *os.File, name string, in io.Reader, perm uint32) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(file, in)
	return errors.Join(err, own(dir, name), unix.Fchmod(fd, perm), file.Close()) // a change of owner may change the mode
}

// own gives what root has made to the owner of the directory that it is in.
func own(dir *os.File, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	return unix.Fchownat(int(dir.Fd()), name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// place renames a content to where it belongs.
func (w *writer) place(dir *os.File, path, name string) error {
	if err := w.unchanged(dir, path, name); err != nil && (!errors.Is(err, unix.ENOENT) || w.state(path).kind() == w.want[path].kind()) {
		if left := unix.Unlinkat(int(dir.Fd()), w.ready[0].temporary, 0); left != nil {
			return left
		}
		return err
	}
	return w.writable(dir, path, func() error {
		return unix.Renameat(int(dir.Fd()), w.ready[0].temporary, int(dir.Fd()), name)
	})
}

// writable does something in a directory. If its mode forbids that to its owner, it is widened, until setModes.
func (w *writer) writable(dir *os.File, path string, do func() error) error {
	err := do()
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	parent, _ := split(path)
	if _, ok := w.modes[parent]; !ok {
		var st unix.Stat_t
		if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
			return err
		}
		w.modes[parent] = uint32(st.Mode) & 0o7777
	}
	if err := unix.Fchmod(int(dir.Fd()), 0o700); err != nil {
		return err
	}
	return do()
}

// setModes sets the modes of directories, those below first.
func (w *writer) setModes() error {
	paths := make([]string, 0, len(w.modes))
	for path := range w.modes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range slices.Backward(paths) {
		dir, err := openPath(w.root, path)
		if isGone(err) {
			continue
		}
		if err == nil {
			err = errors.Join(unix.Fchmod(int(dir.Fd()), w.modes[path]), dir.Close())
		}
		if err != nil {
			return fmt.Errorf("set mode of %s: %w", path, err)
		}
	}
	return nil
}

// discard removes the contents that were not renamed.
func (w *writer) discard() error {
	var failed error
	for _, r := range w.ready {
		dir, err := openPath(w.root, r.dir)
		if err == nil {
			err = errors.Join(unix.Unlinkat(int(dir.Fd()), r.temporary, 0), dir.Close())
		}
		if !isGone(err) {
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		w.ready = nil
	}
	return errors.Join(failed, w.setModes())
}

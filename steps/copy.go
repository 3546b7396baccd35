package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Copy makes a copy of the tree, as it was at the last step, in an empty directory, and in another directory a store of the copy, in which
// nothing has changed yet. The copy's store gets contents from this one as they are replaced in the copy: see Options.Origin.
//
// Files are written from the store, so that the copy is what the last step says, whatever happens in the tree meanwhile. Other methods
// take turns with it after each file.
func (s *Store) Copy(ctx context.Context, to, dir string) (err error) {
	if err := s.wait(ctx); err != nil {
		return err
	}
	filled, from := s.filled, maps.Clone(s.dirs) // what is in it is replaced, never changed
	s.release()
	if !filled {
		return ErrNotFilled
	}
	c := &copier{Store: s, ctx: ctx, from: from}
	if c.copy, err = newCopy(dir, to, s.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.copy.closeFiles()) }()
	if c.root, err = openRoot(s.root); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.root.Close()) }()
	root, err := openRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := c.dir("", root); err != nil {
		return err
	}
	if err := syncTree(root); err != nil {
		return err
	}
	time.Sleep(tick) // whatever changes from now on has another stamp
	return c.copy.saveIndex()
}

// newCopy returns an empty store for a copy, without a watch.
func newCopy(dir, root string, options Options) (*Store, error) {
	s := &Store{dir: dir, root: root, options: Options{FS: options.FS, Key: options.Key}, fsys: options.FS, generation: 1, dirs: make(map[string][]item)}
	made, err := Open(dir, root, s.options) // it makes the files
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	s.fsys = made.fsys
	return s, s.openFiles()
}

// copier makes a copy of a tree.
type copier struct {
	*Store
	ctx  context.Context
	from map[string][]item
	root *os.File // of the tree
	copy *Store
}

func (c *copier) dir(path string, to *os.File) error {
	if strings.Count(path, "/") > maxDepth {
		return fmt.Errorf("directories are nested more than %d deep", maxDepth)
	}
	items := make([]item, 0, len(c.from[path]))
	for _, it := range c.from[path] {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		made, err := c.item(path, it, to)
		if err != nil {
			return fmt.Errorf("copy %s: %w", join(path, it.name), err)
		}
		if made {
			st, err := statIn(to, it.name)
			if err != nil {
				return fmt.Errorf("copy %s: %w", join(path, it.name), err)
			}
			if it.stamp, it.young = stampOf(&st), false; it.state.Lost {
				it.state.Size, it.state.Ref = it.stamp.size, it.stamp.ref()
			}
			items = append(items, it)
		}
	}
	c.copy.dirs[path] = items
	return nil
}

// item copies an entry. It returns false if its content is neither in the store nor to be read.
func (c *copier) item(path string, it item, to *os.File) (made bool, err error) {
	if it.state.IsDir() {
		if err := errors.Join(unix.Mkdirat(int(to.Fd()), it.name, 0o700), own(to, it.name)); err != nil {
			return false, err
		}
		dir, err := openIn(to, it.name)
		if err != nil {
			return false, err
		}
		err = c.dir(join(path, it.name), dir)
		return true, errors.Join(err, unix.Fchmod(int(dir.Fd()), it.state.perm()), dir.Close())
	}
	if it.state.Lost {
		return c.lost(path, it, to)
	}
	if err := c.wait(c.ctx); err != nil {
		return false, err
	}
	defer c.release()
	in, err := c.pack.content(it.state)
	if err != nil {
		return false, err
	}
	if it.state.isLink() {
		target, err := io.ReadAll(in)
		if err != nil {
			return false, err
		}
		return true, errors.Join(unix.Symlinkat(string(target), int(to.Fd()), it.name), own(to, it.name))
	}
	return true, c.write(to, it, in)
}

// lost copies a file whose content is not in the store, such as a very large one, if it can be read.
func (c *copier) lost(path string, it item, to *os.File) (made bool, err error) {
	dir, err := openPath(c.root, path)
	if err != nil {
		return false, nil // it cannot be read
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	in, _, err := openFile(dir, it.name)
	if err != nil {
		return false, nil // it cannot be read
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return true, c.write(to, it, in)
}

// write writes a file as old as the one that it is a copy of: tools such as make compare times.
func (*copier) write(to *os.File, it item, in io.Reader) error {
	if err := writeFile(to, it.name, in, it.state.perm()); err != nil {
		return err
	}
	at := unix.NsecToTimespec(it.stamp.mtime)
	return unix.UtimesNanoAt(int(to.Fd()), it.name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// fetch stores what was in files of a copy before they were changed, if the store of the tree that it is a copy of still has it.
func (s *Store) fetch(ctx context.Context, changes []Change) (err error) {
	if s.options.Origin == nil {
		return nil
	}
	var missing []State
	for _, c := range changes {
		if c.Before.content() && !c.Before.Lost && !s.pack.covers(c.Before) {
			missing = append(missing, c.Before)
		}
	}
	if missing == nil {
		return nil
	}
	origin, release, err := s.options.Origin(ctx)
	if err != nil || origin == nil {
		return err
	}
	defer release()
	if err := origin.wait(ctx); err != nil {
		return err
	}
	defer origin.release()
	for _, state := range missing {
		if err := origin.carry(ctx, s.pack, state, nil); err != nil {
			return err
		}
	}
	return nil
}

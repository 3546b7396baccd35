// Package rmtree removes directory trees that programs have made, whatever they are like.
package rmtree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Dir removes a directory, or a file, by its path. There may be none.
func Dir(dir string) (err error) {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove tree: %w", err)
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	return Below(parent, filepath.Base(dir))
}

// Below removes a directory, or a file, by its name in root. There may be none. However deep the tree is and however much is in it, few
// directories are open and few names in memory at a time, and the rights that a program has taken from itself are given back.
func Below(root *os.Root, name string) error {
	err := removeEmpty(root, name)
	if err == nil {
		return nil
	}
	if info, statErr := root.Lstat(name); statErr != nil || !info.IsDir() {
		return fmt.Errorf("remove tree: %w", err)
	}
	top, err := enter(root, name)
	if err != nil {
		return fmt.Errorf("remove tree: %w", err)
	}
	t := tree{top}
	if err = errors.Join(t.empty(top, ".", 1), top.Close()); err == nil {
		err = removeEmpty(root, name)
	}
	if err != nil {
		return fmt.Errorf("remove tree: %w", err)
	}
	return nil
}

// tree is a tree that is being removed, by its top.
type tree struct{ top *os.Root }

// deepest is how many directories are open at a time.
const deepest = 32

// empty removes all that is in a directory at a path below the top. What is too deep is moved to the top, where it is found again.
func (t tree) empty(dir *os.Root, at string, depth int) error {
	return each(dir, func(name string) error {
		if removeEmpty(dir, name) == nil {
			return nil
		}
		if depth == deepest {
			_ = dir.Chmod(name, 0o700) // a directory that is moved must be writable
			return unlessGone(t.top.Rename(path.Join(at, name), fmt.Sprintf("%016x", rand.Uint64())))
		}
		sub, err := enter(dir, name)
		if err != nil {
			return unlessGone(err)
		}
		return errors.Join(t.empty(sub, path.Join(at, name), depth+1), sub.Close(), removeEmpty(dir, name))
	})
}

// removeEmpty removes a file or an empty directory, if it is there.
func removeEmpty(root *os.Root, name string) error { return unlessGone(root.Remove(name)) }

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// enter opens a directory, with all rights to it.
func enter(root *os.Root, name string) (*os.Root, error) {
	_ = root.Chmod(name, 0o700) // if it fails, so does what follows
	return root.OpenRoot(name)
}

// some is how many names of a directory are read at a time.
const some = 512

// each removes the files in a directory, and calls do with each directory there, which it must remove or move, until the directory is
// empty.
func each(root *os.Root, do func(name string) error) error {
	for {
		dir, err := root.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		entries, err := dir.ReadDir(some)
		if err = errors.Join(err, dir.Close()); len(entries) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() {
				err = do(entry.Name())
			} else {
				err = removeEmpty(root, entry.Name())
			}
			if err != nil {
				return err
			}
		}
	}
}

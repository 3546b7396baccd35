package blob

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// A confined program sees a separate directory in place of the store's. It has hard links to the blobs that the program was
// given, and the program's own files, to which it may refer by the same paths.
const sharedPrefix = "a-"

func sharedName(pid int64) string { return sharedPrefix + strconv.FormatInt(pid, 10) }

// Folder creates and returns the directory that a process sees in place of the store's. It belongs to user and group,
// unless they are negative.
func (s *Store) Folder(pid int64, user, group int) (string, error) {
	name := sharedName(pid)
	root := s.root.Load()
	err := root.Mkdir(name, 0o700)
	if s.renewed(root, err) {
		err = s.root.Load().Mkdir(name, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if user >= 0 {
		if err := s.root.Load().Lchown(name, user, group); err != nil {
			return "", err
		}
	}
	return filepath.Join(s.dir, name), nil
}

// Give makes a blob visible to a process that has a Folder. Other processes see the store itself.
func (s *Store) Give(pid int64, p schema.BlobPointer) error {
	root, folder := s.root.Load(), sharedName(pid)
	info, err := root.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at, err := filepath.Rel(s.dir, p.Path)
	if err != nil {
		return err
	}
	user, group := int(stat(info).Uid), int(stat(info).Gid)
	if in := path.Dir(at); in != "." {
		if err := root.Mkdir(path.Join(folder, in), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := root.Lchown(path.Join(folder, in), user, group); err != nil {
			return err
		}
	}
	if err := root.Link(at, path.Join(folder, at)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return root.Lchown(at, user, group)
}

// OpenFor is Open for a process. Files that the store has not written are looked up in the process's own folder, if it has
// one.
func (s *Store) OpenFor(pid int64, origin string, p schema.BlobPointer) (*Reader, error) {
	in, name, err := s.parse(origin, p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	own := s.entries[path.Join(in, name)].id != identity{}
	s.mu.Unlock()
	root := s.root.Load()
	info, err := root.Lstat(sharedName(pid))
	if own || err != nil {
		return s.Open(origin, p)
	}
	dir, err := root.OpenRoot(path.Join(sharedName(pid), in))
	if err != nil {
		return nil, explain("open blob", err)
	}
	f := folder{Root: dir, owner: int(stat(info).Uid), foreign: true}
	defer f.close()
	r, err := s.reader(f, name, identity{})
	return r, explain("open blob", err)
}

// Drop removes the folders of processes that the kernel has forgotten.
func (s *Store) Drop(remembered func(pid int64) bool) error {
	return s.eachShared(func(name string) error {
		pid, err := strconv.ParseInt(strings.TrimPrefix(name, sharedPrefix), 10, 64)
		if err == nil && remembered(pid) {
			return nil
		}
		return s.root.Load().RemoveAll(name)
	})
}

// sweepShared removes files older than the time to live from the folders of processes.
func (s *Store) sweepShared() error {
	oldest := s.now().Add(-s.limits.TTL)
	return s.eachShared(func(name string) error {
		root := s.root.Load()
		return fs.WalkDir(root.FS(), name, func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // it was removed, or the process has removed permissions of its folder
			}
			if info, err := d.Info(); err == nil && info.ModTime().Before(oldest) {
				_ = root.Remove(at) // a process that prevents this fills only its own folder
			}
			return nil
		})
	})
}

func (s *Store) eachShared(do func(name string) error) error {
	files, err := list(s.root.Load(), "")
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if f.info.IsDir() && strings.HasPrefix(f.path, sharedPrefix) {
			errs = append(errs, do(f.path))
		}
	}
	return errors.Join(errs...)
}

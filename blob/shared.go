package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A confined program sees a directory of its own in place of the store's. It has copies of the blobs that were written for
// the program, and the program's own files, to which it may refer by the same paths. The directory is a share, a file
// system of a bounded size that ends with the process, or, on a machine without such, a folder of the store, in which the
// program may write nothing.
const sharedPrefix = "a-"

func sharedName(pid int64) string { return sharedPrefix + strconv.FormatInt(pid, 10) }

// share is the directory of one process.
type share struct {
	root        *os.Root
	user, group int
}

// Folder creates and returns the folder that a process may read in place of the store's directory. It belongs to user and
// group, unless they are negative.
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

// Adopt makes a file system the directory of a process, in place of the one of an earlier run, whose files it copies. It
// belongs to user and group, unless they are negative. The store closes root.
func (s *Store) Adopt(pid int64, root *os.Root, user, group int) error {
	next := share{root, os.Geteuid(), os.Getegid()}
	if user >= 0 {
		next.user, next.group = user, group
	}
	err := root.Chown(".", next.user, next.group)
	s.mu.Lock()
	last, restarted := s.shares[pid]
	s.mu.Unlock()
	if restarted && err == nil {
		err = next.takeOver(last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.closed {
		err = errClosed()
	}
	if err != nil {
		return errors.Join(err, root.Close())
	}
	s.shares[pid] = next
	if restarted {
		return last.root.Close()
	}
	return nil
}

// takeOver copies the files of an earlier share. What cannot be read or does not fit is left out: the program has made it
// so.
func (d share) takeOver(last share) error {
	return fs.WalkDir(last.root.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.Count(at, "/") > 1 {
			return nil //nolint:nilerr // see above
		}
		f, err := last.root.Open(at)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		defer f.Close() // read only
		if err := d.add(at, f); err != nil && !isFull(err) {
			return err
		}
		return nil
	})
}

// add writes a file of the share, unless it is there.
func (d share) add(at string, from io.Reader) error {
	if in := path.Dir(at); in != "." {
		if err := d.root.Mkdir(in, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := d.root.Lchown(in, d.user, d.group); err != nil {
			return err
		}
	}
	f, err := d.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	err = errors.Join(err, f.Chown(d.user, d.group), f.Close())
	if err != nil {
		_ = d.root.Remove(at) // the error says that it is not there
	}
	return err
}

// give makes a blob visible to a process that has a directory of its own. Other processes see the store itself.
func (s *Store) give(pid int64, at string) error {
	d, err := s.sharedOf(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.root.Close() // what was written is closed
	f, err := s.root.Load().Open(at)
	if err != nil {
		return err
	}
	defer f.Close() // read only
	err = d.add(at, f)
	if isFull(err) {
		return fault.BlobNoRoom.New("the blob directory of process %d is full: remove files in it", pid)
	}
	return err
}

// sharedOf opens the directory of a process. The caller must close its root.
func (s *Store) sharedOf(pid int64) (share, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.shares[pid]; ok {
		root, err := d.root.OpenRoot(".")
		d.root = root
		return d, err
	}
	root := s.root.Load()
	info, err := root.Lstat(sharedName(pid))
	if err != nil {
		return share{}, err
	}
	d := share{user: int(stat(info).Uid), group: int(stat(info).Gid)}
	d.root, err = root.OpenRoot(sharedName(pid))
	return d, err
}

// OpenFor is Open for a process. Files that the store has not written are looked up in the process's own directory, if it
// has one.
func (s *Store) OpenFor(pid int64, origin string, p schema.BlobPointer) (*Reader, error) {
	in, name, err := s.parse(origin, p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	own := s.entries[path.Join(in, name)].id != identity{}
	s.mu.Unlock()
	if own {
		return s.Open(origin, p)
	}
	d, err := s.sharedOf(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return s.Open(origin, p)
	}
	if err != nil {
		return nil, explain("open blob", err)
	}
	defer d.root.Close() // nothing was written to it
	dir, err := d.root.OpenRoot(path.Join(".", in))
	if err != nil {
		return nil, explain("open blob", err)
	}
	f := folder{Root: dir, owner: d.user, foreign: true}
	defer f.close()
	r, err := s.reader(f, name, identity{})
	return r, explain("open blob", err)
}

// End removes the directory of a process that has ended.
func (s *Store) End(pid int64) error {
	s.mu.Lock()
	d, ok := s.shares[pid]
	delete(s.shares, pid)
	s.mu.Unlock()
	if ok {
		return d.root.Close()
	}
	if err := s.root.Load().RemoveAll(sharedName(pid)); err != nil {
		return fmt.Errorf("remove the blob directory of process %d: %w", pid, errors.Unwrap(err))
	}
	return nil
}

// clearShared removes the folders of the processes of an earlier store.
func (s *Store) clearShared() error {
	return s.eachFolder(func(name string) error { return s.root.Load().RemoveAll(name) })
}

// sweepShared removes files older than the time to live from the directories of processes.
func (s *Store) sweepShared() error {
	err := s.eachFolder(func(name string) error { return s.sweepOne(s.root.Load(), name) })
	return errors.Join(err, s.eachShare(func(_ int64, root *os.Root) error { return s.sweepOne(root, ".") }))
}

func (s *Store) sweepOne(root *os.Root, dir string) error {
	oldest := s.now().Add(-s.limits.TTL)
	return fs.WalkDir(root.FS(), dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // it was removed, or the process has removed permissions of its directory
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(oldest) {
			_ = root.Remove(at) // a process that prevents this fills only its own directory
		}
		return nil
	})
}

// eachShare calls do for each share with the process that has it.
func (s *Store) eachShare(do func(pid int64, root *os.Root) error) (err error) {
	s.mu.Lock()
	shares := make(map[int64]share, len(s.shares))
	for pid, d := range s.shares {
		root, openErr := d.root.OpenRoot(".")
		if err = errors.Join(err, openErr); openErr == nil {
			shares[pid] = share{root: root}
		}
	}
	s.mu.Unlock()
	for pid, d := range shares {
		err = errors.Join(err, do(pid, d.root), d.root.Close())
	}
	return err
}

func (s *Store) eachFolder(do func(name string) error) error {
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

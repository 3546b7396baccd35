package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// found is a file of the directory that scan has found.
type found struct {
	path string
	info fs.FileInfo
}

// Sweep removes files that are not in use and older than the time to live, and updates the usage for files that other
// programs have added or removed. It returns what it has removed. The age counts from the commit of a blob, or its last
// use; for files of others, and of an earlier start, from their last change.
func (s *Store) Sweep() (Usage, error) {
	removed, err := s.sweepFolders(false)
	if err = errors.Join(err, s.sweepShared()); err != nil {
		return removed, fmt.Errorf("sweep blobs: %w", err)
	}
	return removed, nil
}

// sweepFolders removes unused files. At the start of a store no file can be in use, so it removes unfinished ones of any
// age.
func (s *Store) sweepFolders(start bool) (removed Usage, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return removed, errClosed()
	}
	root := s.root.Load()
	files, err := s.scan()
	if s.renewed(root, err) {
		files, err = s.scan()
	}
	if err != nil {
		return removed, err
	}
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		seen[f.path] = true
		bytes, gone, ferr := s.visit(f, start)
		if err = errors.Join(err, ferr); gone {
			removed.Files++
			removed.Bytes += bytes
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.entries {
		if !seen[name] { // removed by another program, or committed meanwhile
			if _, lerr := s.root.Load().Lstat(name); errors.Is(lerr, fs.ErrNotExist) {
				s.forget(name)
			}
		}
	}
	return removed, err
}

// visit updates the usage for one file, and removes the file if it has expired.
func (s *Store) visit(f found, start bool) (bytes int64, gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	unfinished := strings.HasPrefix(path.Base(f.path), newPrefix)
	if s.writing[f.path] {
		return 0, false, nil
	}
	at := f.info.ModTime()
	if at.After(now) {
		at = now // the file's time is in the future
	}
	if f.info.Mode().IsRegular() && !unfinished {
		s.learn(f.path, f.info.Size(), at)
		at, bytes = s.entries[f.path].at, f.info.Size()
	}
	if s.uses[f.path] > 0 || now.Sub(at) <= s.limits.TTL && !(start && unfinished) {
		return 0, false, nil
	}
	switch err := s.root.Load().Remove(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		s.forget(f.path)
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	s.forget(f.path)
	return bytes, true, nil
}

// clear removes empty directories while no blob is being written.
func (s *Store) clear() error {
	files, err := list(s.root.Load(), "")
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.info.IsDir() && isFolder(f.path) {
			_ = s.root.Load().Remove(f.path) // fails if it is not empty
		}
	}
	return nil
}

// scan lists the files of the directory and of its folders.
func (s *Store) scan() ([]found, error) {
	files, err := list(s.root.Load(), "")
	if err != nil {
		return nil, err
	}
	var all []found
	for _, f := range files {
		if !f.info.IsDir() {
			all = append(all, f)
			continue
		}
		if !isFolder(f.path) {
			continue // not a folder of the store
		}
		dir, err := s.openFolder(f.path)
		if err != nil {
			continue // another program has replaced it
		}
		within, err := list(dir.Root, f.path)
		dir.close()
		if err != nil {
			return nil, err
		}
		for _, f := range within {
			if !f.info.IsDir() {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// list returns the entries of a directory of root.
func list(root *os.Root, at string) ([]found, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var all []found
	for _, name := range names {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, found{path.Join(at, name), info})
	}
	return all, nil
}

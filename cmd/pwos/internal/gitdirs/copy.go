package gitdirs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// keep makes the copies of a repository, its work trees and its submodules.
func (s *Session) keep(repo Repo, fresh map[string]bool) error {
	k := &kept{Repo: repo}
	s.Repos = append(s.Repos, k)
	k.Branches, k.Listed = branches(repo.Common)
	commons, trees := gitDirs(repo)
	k.Heads = map[string]string{}
	for _, dir := range append(slices.Clone(commons), trees...) {
		head, err := readRegular(filepath.Join(dir, "HEAD"), maxConfig)
		if err == nil {
			k.Heads[dir] = string(head)
		}
	}
	for _, dir := range commons {
		k.Parts = append(k.Parts, filepath.Join(dir, "objects"), filepath.Join(dir, "refs"))
		for _, name := range []string{"config", "config.worktree"} {
			if err := s.copyFile(k, filepath.Join(dir, name), fresh); err != nil {
				return err
			}
		}
		for _, name := range []string{"hooks", "branches", "remotes"} {
			if err := s.copyDir(k, filepath.Join(dir, name), fresh); err != nil {
				return err
			}
		}
		if err := s.fix(k, filepath.Join(dir, "commondir"), ".\n", fresh); err != nil {
			return err
		}
	}
	for _, dir := range trees {
		if err := s.copyFile(k, filepath.Join(dir, "config.worktree"), fresh); err != nil {
			return err
		}
		for _, name := range []string{"commondir", "gitdir"} {
			if err := s.fix(k, filepath.Join(dir, name), "", fresh); err != nil {
				return err
			}
		}
	}
	if file := filepath.Join(repo.At, ".git"); repo.At != repo.Git && file != repo.Git {
		return s.fix(k, file, "", fresh)
	}
	return nil
}

// gitDirs returns the directories of a repository that have settings and hooks, its submodules' included, and those of its linked work trees.
func gitDirs(repo Repo) (commons, trees []string) {
	var visit func(dir string, depth int)
	modules := func(dir string, depth int) {
		const deepest = 16
		var walk func(at string, depth int)
		walk = func(at string, depth int) {
			entries, err := os.ReadDir(at)
			if err != nil || depth > deepest {
				return
			}
			for _, e := range entries {
				switch path := filepath.Join(at, e.Name()); {
				case !e.IsDir():
				case isGitDir(path):
					visit(path, depth+1)
				default:
					walk(path, depth+1) // the name of a submodule may have slashes
				}
			}
		}
		walk(filepath.Join(dir, "modules"), depth)
	}
	visit = func(dir string, depth int) {
		commons = append(commons, dir)
		entries, _ := os.ReadDir(filepath.Join(dir, "worktrees")) // there are none
		for _, e := range entries {
			if e.IsDir() {
				tree := filepath.Join(dir, "worktrees", e.Name())
				trees = append(trees, tree)
				modules(tree, depth)
			}
		}
		modules(dir, depth)
	}
	visit(repo.Common, 0)
	return commons, trees
}

// hold adds something that is held, once.
func (s *Session) hold(to *[]*held, h *held) bool {
	if slices.ContainsFunc(s.all(), func(other *held) bool { return other.Path == h.Path }) {
		return false
	}
	*to = append(*to, h)
	return true
}

// copyFile copies a file of settings, which it makes if there is none: something can only stand where something is.
func (s *Session) copyFile(k *kept, path string, fresh map[string]bool) error {
	text, err := readRegular(path, maxConfig)
	h := &held{Path: path, Fresh: fresh[path]}
	if errors.Is(err, fs.ErrNotExist) {
		made, err := placeholder(path, "")
		if err != nil || !made {
			return err
		}
		h.Fresh = true
	} else if err != nil { // a link, or too long
		s.hold(&k.Fixed, h)
		return nil
	}
	h.Copy = filepath.Join(s.folder(), "x", filepath.Base(path))
	if !s.hold(&k.Configs, h) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, h.Copy)), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(s.base(h), text, 0o600), os.WriteFile(filepath.Join(s.dir, h.Copy), text, 0o600))
}

// base returns where the settings are that an agent found.
func (s *Session) base(h *held) string {
	return filepath.Join(s.dir, filepath.Dir(filepath.Dir(h.Copy)), filepath.Base(h.Copy)+".base")
}

// folder returns a new name of a directory for one copy.
func (s *Session) folder() string { return fmt.Sprint(len(s.all())) }

// Bounds of a directory that is copied.
const (
	maxCopied  = 4 << 20
	mostCopied = 1000
)

// copyDir copies a directory. One that cannot be copied cannot be changed either.
func (s *Session) copyDir(k *kept, path string, fresh map[string]bool) error {
	h := &held{Path: path, Fresh: fresh[path], IsDir: true, Files: map[string]string{}}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err := os.Mkdir(path, 0o777)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return nil // an agent cannot either
		}
		if err == nil {
			err = asParent(path)
		}
		if err != nil {
			return err
		}
		h.Fresh = true
	case err != nil:
		return err
	case !info.IsDir():
		s.hold(&k.Fixed, h)
		return nil
	}
	h.Copy = filepath.Join(s.folder(), "x", filepath.Base(path))
	to := filepath.Join(s.dir, h.Copy)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := list(path)
	if err != nil {
		s.hold(&k.Fixed, &held{Path: path, Fresh: h.Fresh})
		return os.RemoveAll(to)
	}
	if !s.hold(&k.Dirs, h) {
		return nil
	}
	for name, f := range files {
		at := filepath.Join(to, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case f.link != "":
			err = os.Symlink(f.link, at)
		default:
			err = os.WriteFile(at, f.text, f.mode|0o200)
		}
		if err != nil {
			return err
		}
		h.Files[name] = f.digest()
	}
	return nil
}

// content is a file of a directory.
type content struct {
	text []byte
	link string
	mode os.FileMode
}

func (c content) digest() string {
	sum := sha256.Sum256(append([]byte(c.link+"\x00"+c.mode.String()+"\x00"), c.text...))
	return hex.EncodeToString(sum[:])
}

// list reads the files of a directory.
func list(dir string) (map[string]content, error) {
	files, size := map[string]content{}, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		var c content
		if d.Type() == fs.ModeSymlink {
			c.link, err = os.Readlink(path)
		} else {
			var info fs.FileInfo
			if c.text, info, err = read(path, maxCopied); err == nil {
				c.mode = info.Mode().Perm()
			}
		}
		if size += len(c.text); err == nil && (size > maxCopied || len(files) > mostCopied) {
			err = errors.New("it has too much in it")
		}
		files[strings.TrimPrefix(path, dir+"/")] = c
		return err
	})
	return files, err
}

// fix keeps a file as it is. If it should be there, it is made.
func (s *Session) fix(k *kept, path, text string, fresh map[string]bool) error {
	h := &held{Path: path, Fresh: fresh[path]}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if text == "" {
			return nil
		}
		made, err := placeholder(path, text)
		if err != nil || !made {
			return err
		}
		h.Fresh = true
	}
	s.hold(&k.Fixed, h)
	return nil
}

// placeholder makes a file. made is false if this user cannot, and so an agent cannot either.
func placeholder(path, text string) (made bool, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = file.WriteString(text)
	return true, errors.Join(err, file.Close(), asParent(path))
}

// asParent gives what root has made to the owner of the directory that it is in.
func asParent(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	return keepOwner(path, info)
}

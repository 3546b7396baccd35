// Package gitdirs keeps what agents do to the repositories of a project apart from what the user's git runs. It finds the directories of git
// that belong to a project, makes private copies of their settings and hooks for an agent, and takes over what is safe of what the agent has
// changed in those.
//
// An agent may have written everything in the project, and all that this package reads there. It runs git only on single files of settings
// that it has read itself, without a repository, so that no setting is in effect.
package gitdirs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Repo is a repository of a project.
type Repo struct {
	At     string // its work tree, or the repository itself if it is bare
	Git    string // the directory of git of this work tree
	Common string // the one that all work trees of the repository share
}

// Refused is a repository whose directory of git is outside of the project, and does not prove that it belongs to it.
type Refused struct{ At, Git, Why string }

// Bounds of a search: repositories that lie deeper, or behind more directories, are not found.
const (
	searchDepth = 3
	searchDirs  = 1000
)

// Find finds the repositories in directories that an agent may write. made reports whether an agent has made a file .git.
func Find(roots []string, made func(file string) bool) (found []Repo, refused []Refused) {
	return classify(Search(roots), roots, made)
}

// classify returns those of the directories that Search has found of which an agent gets copies.
func classify(places, roots []string, made func(file string) bool) (found []Repo, refused []Refused) {
	for _, at := range places {
		git := filepath.Join(at, ".git")
		info, err := os.Lstat(git)
		switch {
		case err != nil:
			found = append(found, Repo{At: at, Git: at, Common: at}) // a bare one
		case info.IsDir():
			found = append(found, Repo{At: at, Git: git, Common: git})
		case info.Mode().IsRegular():
			repo, why := linked(at, roots, made(git))
			if why != "" {
				refused = append(refused, Refused{At: at, Git: repo.Git, Why: why})
			} else {
				found = append(found, repo)
			}
		}
	}
	return found, refused
}

// Search returns the directories that are repositories, or have something named .git, those above first.
func Search(roots []string) (found []string) {
	type dir struct {
		path  string
		depth int
	}
	var queue []dir
	for _, root := range roots {
		queue = append(queue, dir{root, 0})
	}
	seen := map[string]bool{}
	for n := 0; n < len(queue) && n < searchDirs; n++ {
		at := queue[n]
		if seen[at.path] {
			continue
		}
		seen[at.path] = true
		entries, err := os.ReadDir(at.path)
		if err != nil {
			continue // git cannot read it either
		}
		has := func(name string) bool {
			return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name })
		}
		if has(".git") {
			found = append(found, at.path)
		} else if has("HEAD") && has("objects") && has("refs") {
			found = append(found, at.path)
			continue
		}
		for _, e := range entries {
			if e.IsDir() && at.depth < searchDepth && e.Name() != ".git" && e.Name() != "node_modules" {
				queue = append(queue, dir{filepath.Join(at.path, e.Name()), at.depth + 1})
			}
		}
	}
	return found
}

// linked returns the repository to which a file .git leads, or why it is not taken. A file .git is a part of the project, which an agent or
// somebody whose files were unpacked there may have written: it can name any directory. So that directory must prove that it belongs here, by
// something in it that leads back:
//
//   - a linked work tree: C/worktrees/NAME, whose commondir names C, and whose gitdir names the file;
//   - a submodule: S/modules/NAME, whose core.worktree names the work tree, which is in that of S;
//   - another one: its core.worktree names the work tree, or its index has a file of that with the same number and times.
//
// All are the user's, and reached without a symbolic link. If an agent has made the file, nothing proves anything: it may have written
// both ends, in different projects.
func linked(at string, roots []string, made bool) (r Repo, why string) {
	file := filepath.Join(at, ".git")
	text, owner, err := readOwned(file, 4096)
	if err != nil {
		return r, err.Error()
	}
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok || to == "" || strings.ContainsAny(to, "\x00\n") {
		return r, "its file .git names no directory"
	}
	git := to
	if !filepath.IsAbs(git) {
		git = filepath.Join(at, git)
	}
	git = filepath.Clean(git)
	r = Repo{At: at, Git: git, Common: git}
	if why := owned(git, owner); why != "" {
		return r, why
	}
	within := func(path string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return isIn(path, root) })
	}
	if common, _, err := readOwned(filepath.Join(git, "commondir"), 4096); err == nil {
		r.Common = filepath.Join(git, strings.TrimRight(string(common), "\n"))
		if filepath.IsAbs(string(common)) {
			r.Common = filepath.Clean(strings.TrimRight(string(common), "\n"))
		}
		if r.Common != git && r.Common != filepath.Dir(filepath.Dir(git)) {
			return r, "its commondir leads to another repository"
		}
		if why := owned(r.Common, owner); why != "" {
			return r, why
		}
	}
	if within(git) && within(r.Common) {
		return r, ""
	}
	if made {
		return r, "an agent has made its file .git"
	}
	if why := leadsBack(r, file); why != "" {
		return r, why
	}
	return r, ""
}

// leadsBack returns why a directory of git outside of the project does not prove that it belongs to it; "" if it does.
func leadsBack(r Repo, file string) string {
	if !isGitDir(r.Common) {
		return "it leads to no repository"
	}
	if r.Common != r.Git {
		back, _, err := readOwned(filepath.Join(r.Git, "gitdir"), 4096)
		if err != nil || filepath.Base(filepath.Dir(r.Git)) != "worktrees" {
			return "it leads to no work tree of that repository"
		}
		to := strings.TrimRight(string(back), "\n")
		if !filepath.IsAbs(to) {
			to = filepath.Join(r.Git, to)
		}
		if filepath.Clean(to) != file {
			return "that repository knows it at another place"
		}
		return ""
	}
	tree, err := worktreeOf(r.Git)
	switch {
	case err != nil:
		return "its settings cannot be read"
	case tree != "" && tree != r.At:
		return "that repository belongs to another directory"
	case tree == "" && !isIndexOf(filepath.Join(r.Git, "index"), r.At):
		return "that repository does not name this directory"
	}
	if above, _, is := strings.Cut(r.Git, "/modules/"); is && tree != "" && isGitDir(above) && filepath.Base(above) == ".git" && !isIn(r.At, filepath.Dir(above)) {
		return "it is no submodule of that repository"
	}
	return ""
}

// worktreeOf returns the directory that core.worktree of a repository names; "" if it names none.
func worktreeOf(git string) (string, error) {
	text, err := readRegular(filepath.Join(git, "config"), maxConfig)
	if err != nil {
		return "", err
	}
	settings, err := Parse(text)
	if err != nil {
		return "", err
	}
	values := settings["core.worktree"]
	if len(values) == 0 {
		return "", nil
	}
	to := values[len(values)-1]
	if !filepath.IsAbs(to) {
		to = filepath.Join(git, to)
	}
	return filepath.Clean(to), nil
}

// isGitDir reports whether a directory is one of git.
func isGitDir(dir string) bool {
	for name, isDir := range map[string]bool{"HEAD": false, "objects": true, "refs": true} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.IsDir() != isDir {
			return false
		}
	}
	return true
}

// owned returns why a directory is not a user's own; "" if it is.
func owned(dir string, owner int) string {
	if real, err := filepath.EvalSymlinks(dir); err != nil {
		return "it leads nowhere"
	} else if real != dir {
		return "it leads through a symbolic link"
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return "it leads to no directory"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != owner {
		return "it leads to a directory of another user"
	}
	return ""
}

// readOwned reads a file, and returns its owner, which must be this user unless that is root.
func readOwned(path string, most int64) (text []byte, owner int, err error) {
	text, info, err := read(path, most)
	if err != nil {
		return nil, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return nil, 0, errors.New("its file .git is another user's")
	}
	return text, int(st.Uid), nil
}

func readRegular(path string, most int64) ([]byte, error) {
	text, _, err := read(path, most)
	return text, err
}

// read reads a regular file, which an agent may have replaced by anything.
func read(path string, most int64) ([]byte, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	if err == nil && bytes.IndexByte(text, 0) >= 0 && filepath.Base(path) != "index" {
		err = fmt.Errorf("%s is no text", path)
	}
	return text, info, err
}

// isIn reports whether a path is a directory, or in it.
func isIn(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Package held finds the files of a project whose content agents do not see until its user shows them: .env, which usually has
// credentials.
package held

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// names are patterns for the names of these files.
var names = [...]string{".env*"}

// templates are the ends of names of files without values: .env.example.
var templates = [...]string{"example", "sample", "template", "tmpl", "tpl", "dist", "defaults", "schema"}

// skipped are directories with the files of others, which are not searched.
var skipped = [...]string{".git", ".hg", ".svn", "node_modules"}

// Depth is how many levels below a project are searched, and most how many directories.
const (
	Depth = 3
	most  = 20_000
)

// ErrTooMany says that a project has more directories than are searched.
var ErrTooMany = errors.New("too many directories")

// Files returns the files that are held in the projects of these directories, sorted. A project with more directories than are searched
// is an error, since an agent could have made them to show what comes after.
func Files(dirs, homes []string) (list []string, err error) {
	for _, dir := range dirs {
		for _, top := range slices.Compact([]string{Project(dir, homes), dir}) { // dir may be deeper than the search
			found, err := search(top, most)
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Project returns the outermost directory with a repository that a directory is in, or the directory: an agent cannot make its project
// smaller by a repository of its own. A home directory is no project, nor is one that everybody may write.
func Project(dir string, homes []string) string {
	project := dir
	for at := dir; at != "/" && !slices.Contains(homes, at); at = filepath.Dir(at) {
		const everybody = 0o002
		if info, err := os.Lstat(at); err != nil || at != dir && info.Mode().Perm()&everybody != 0 {
			break
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			project = at
		}
	}
	return project
}

// search searches a directory, level by level, without following links, and at most so many directories.
func search(top string, most int) (list []string, err error) {
	level, searched := []string{top}, 0
	for range Depth + 1 {
		var next []string
		for _, dir := range level {
			if searched++; searched > most {
				return nil, fmt.Errorf("%w: %s has more than %d, in which there may be files named %s, which agents do not see: "+
					"remove some, or show these files with \"pwos project allow\"", ErrTooMany, top, most, strings.Join(names[:], ", "))
			}
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // an agent cannot list it either
				return nil, fmt.Errorf("look for files to hide: %w", err)
			}
			for _, entry := range entries {
				switch name := entry.Name(); {
				case entry.Type().IsRegular() && Named(name):
					list = append(list, filepath.Join(dir, name))
				case entry.IsDir() && !slices.Contains(skipped[:], name):
					next = append(next, filepath.Join(dir, name))
				}
			}
		}
		level = next
	}
	return list, nil
}

// Named reports whether files of a name are held. Some file systems do not tell cases apart.
func Named(name string) bool {
	name = strings.ToLower(name)
	end := name[strings.LastIndexAny(name, ".-_")+1:]
	return !slices.Contains(templates[:], end) && slices.ContainsFunc(names[:], func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return matched && err == nil
	})
}

// Package held finds the files of a project that agents do not get as they are until its user allows it: some they do not see, such as
// .env, which usually has credentials. Others they may not change, since programs outside run them.
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

// names are patterns for the names of files that agents do not see.
var names = [...]string{".env*"}

// templates are the ends of names of such files without values: .env.example.
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

// Found is what Search finds.
type Found struct {
	Hidden  []string // files that agents do not see
	Outside []string // what programs outside run: files, symbolic links, and directories
}

// Search returns what is held in the project of a directory, sorted. If the project has more directories than are searched, it returns
// what it has found and ErrTooMany, since an agent could have made them to show what comes after.
func Search(dir string, homes []string) (all Found, err error) {
	for _, top := range slices.Compact([]string{Project(dir, homes), dir}) { // dir may be deeper than the search
		found, bad := below(top, most)
		all.Hidden, all.Outside = append(all.Hidden, found.Hidden...), append(all.Outside, found.Outside...)
		if err == nil {
			err = bad
		}
	}
	for _, list := range []*[]string{&all.Hidden, &all.Outside} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return all, err
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

// below searches a directory, level by level, without following links, and at most so many directories.
func below(top string, most int) (found Found, err error) {
	level, searched := []string{top}, 0
	for depth := range Depth + 2 {
		var next []string
		for _, dir := range level {
			if depth > Depth && !hasOutside(filepath.Base(dir)) {
				continue
			}
			if searched++; searched > most {
				return found, fmt.Errorf("%w: %s has more than %d, in which there may be files named %s, which agents do not see: "+
					"remove some, or show these files with \"pwos project allow\"", ErrTooMany, top, most, strings.Join(names[:], ", "))
			}
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // an agent cannot list it either
				return found, fmt.Errorf("look for files to hide: %w", err)
			}
			for _, entry := range entries {
				name := entry.Name()
				path := filepath.Join(dir, name)
				switch link := entry.Type()&fs.ModeSymlink != 0; {
				case isOutside(filepath.Base(dir), name), link && hasOutside(name):
					found.Outside = append(found.Outside, path)
					if link {
						found.Outside = append(found.Outside, links(path)...)
					}
				case entry.IsDir() && !slices.Contains(skipped[:], name):
					next = append(next, path)
				}
				if entry.Type().IsRegular() && depth <= Depth && Named(name) {
					found.Hidden = append(found.Hidden, path)
				}
			}
		}
		level = next
	}
	return found, nil
}

// Named reports whether agents do not see files of a name. Some file systems do not tell cases apart.
func Named(name string) bool {
	name = strings.ToLower(name)
	end := name[strings.LastIndexAny(name, ".-_")+1:]
	return !slices.Contains(templates[:], end) && slices.ContainsFunc(names[:], func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return matched && err == nil
	})
}

// Package bind reads the files that a command names, so that an approval of the command is one of their contents too.
package bind

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/schema"
)

// Bounds of what is read for one command.
const (
	maxFiles = 8
	maxSize  = 8 << 20 // of a file, in bytes
)

// Place describes where a command runs.
type Place struct {
	Dir   string   // its working directory; "": not known
	Roots []string // the directories that the agent may write, absolute
	Review
}

// Review is a copy of a directory that the agent has in its place.
type Review struct{ Of, Copy string }

// place returns where a file is that the agent has at a path, as a root and a path in that.
func (r Review) place(root, rel, path string) (string, string) {
	if inCopy, err := filepath.Rel(r.Of, path); r.Of != "" && err == nil && filepath.IsLocal(inCopy) {
		return r.Copy, inCopy
	}
	return root, rel
}

// Tool returns what of the files that a tool's command names is bound; nil: the tool runs no command.
func Tool(at Place, in *schema.ToolUseInput) *schema.CommandFiles {
	for _, name := range []string{"command", "cmd", "script"} {
		for _, cut := range in.Cut {
			if cut == name || cut == "*" {
				return &schema.CommandFiles{Unbound: "the command is not known in full"}
			}
		}
		text, list := commandOf(in.Input, name)
		switch {
		case list != nil:
			s := &scan{commands: [][]string{list}}
			s.judge()
			return at.bind(s)
		case text != "":
			return at.bind(split(text))
		}
	}
	return nil
}

// commandOf returns a member of a tool's input: a text, or a list of words.
func commandOf(input schema.Value, name string) (text string, list []string) {
	members, err := schema.TypeOf[map[string]schema.Value]().Decode(input)
	if err != nil {
		return "", nil
	}
	value := (*members.(*map[string]schema.Value))[name]
	if value == nil {
		return "", nil
	}
	if decoded, err := schema.TypeOf[string]().Decode(value); err == nil {
		return *decoded.(*string), nil
	}
	if decoded, err := schema.TypeOf[[]string]().Decode(value); err == nil {
		return "", *decoded.(*[]string)
	}
	return "", nil
}

// bind reads the files that the words of commands name.
func (p Place) bind(s *scan) *schema.CommandFiles {
	out, seen := &schema.CommandFiles{Unbound: s.unread}, map[string]bool{}
	unbound := func(format string, args ...any) {
		if out.Unbound == "" {
			out.Unbound = fmt.Sprintf(format, args...)
		}
	}
	for _, words := range s.commands {
		for i, word := range words {
			if i == 0 && !strings.Contains(word, "/") { // it is looked up in PATH
				continue
			}
			for _, name := range namesIn(word) {
				path, ok := p.path(name)
				switch {
				case !ok:
					unbound("the directory that it runs in is not known")
					continue
				case seen[path]:
					continue
				}
				seen[path] = true
				for _, root := range p.Roots {
					rel, err := filepath.Rel(root, path)
					if err != nil || !filepath.IsLocal(rel) {
						continue
					}
					if len(out.Files) == maxFiles {
						unbound("it names more than %d files", maxFiles)
						break
					}
					file, why := read(p.place(root, rel, path))
					if file != nil {
						file.Path = path
						out.Files = append(out.Files, *file)
					} else if why != "" {
						unbound("%s %s", shown(path), why)
					}
					break
				}
			}
		}
	}
	if len(out.Files) == 0 {
		unbound("it names no file that the agent may write")
	}
	return out
}

// namesIn returns the names of files that a word may have: itself, and the value of an option.
func namesIn(word string) []string {
	names := []string{word}
	if name, value, ok := strings.Cut(word, "="); ok && value != "" && name != "" {
		names = append(names, value)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) })
}

// path returns the absolute path of a name.
func (p Place) path(name string) (string, bool) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), true
	}
	return filepath.Join(p.Dir, name), filepath.IsAbs(p.Dir)
}

// read reads a file below a root. It follows no link out of it. why says why a file that exists is not bound.
func read(root, rel string) (file *schema.BoundFile, why string) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, "cannot be read"
	}
	defer func() { _ = dir.Close() }()                             // read only
	f, err := dir.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe has no writer to wait for
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return nil, ""
	case err != nil:
		return nil, "cannot be read, or is a link that leads elsewhere"
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "cannot be read"
	case info.IsDir():
		return nil, "is a directory"
	case !info.Mode().IsRegular():
		return nil, "is not a regular file"
	}
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, "cannot be read"
	case size > maxSize:
		return nil, fmt.Sprintf("is longer than %d bytes", maxSize)
	}
	return &schema.BoundFile{Path: filepath.Join(root, rel), Digest: schema.Integrity(h.Sum(nil)), Size: size}, ""
}

func shown(path string) string { return clip.Text(strings.ToValidUTF8(path, "\uFFFD"), 256) }

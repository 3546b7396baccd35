package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// Bounds of what comes along of a user's set-up.
const (
	mostBrought  = 1000    // files
	bytesBrought = 8 << 20 // of all files
	deepBrought  = 6       // directories below a name
)

// brought is what comes along of a user's set-up for an agent host.
type brought struct {
	files    map[string]string // by name below the home
	settings map[string]string // the same, in place of those of the preset
	programs []string          // files that may be executed
	names    []string          // of the preset, that there are
	bytes    int
}

// bring reads what the preset of a host names of its user's set-up. A name may be a link, which is the user's own. Below it there may be
// links that others have made, such as an agent: they are left out.
func bring(host *preset.Host, home string) (*brought, error) {
	b := &brought{files: make(map[string]string), settings: make(map[string]string)}
	for _, name := range host.Brings {
		before := len(b.files)
		if err := b.top(filepath.Join(home, name), name); err != nil {
			return nil, fmt.Errorf("bring ~/%s along: %w", name, err)
		}
		if len(b.files) > before {
			b.names = append(b.names, name)
		}
	}
	if name := host.Settings.File; name != "" {
		one := &brought{files: b.settings}
		if err := one.top(filepath.Join(home, name), name); err != nil {
			return nil, fmt.Errorf("bring ~/%s along: %w", name, err)
		}
		if text := kept(&host.Settings, []byte(b.settings[name])); len(text) > 0 {
			b.settings[name] = string(text)
		} else {
			delete(b.settings, name)
		}
	}
	return b, nil
}

// top takes a name of the preset.
func (b *brought) top(at, name string) error {
	at, err := filepath.EvalSymlinks(at)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, base := filepath.Split(at)
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		dir, base = at, "."
	}
	root, err := os.OpenRoot(dir) // which nothing leads out of
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(b.take(root, base, name, deepBrought), root.Close())
}

// take reads a file below root, or the files of a directory there.
func (b *brought) take(root *os.Root, at, name string, depth int) error {
	info, err := root.Lstat(at)
	switch {
	case missing(err):
		return nil
	case err != nil:
		return err
	case held.LooksSecret(path.Base(name)), at != "." && held.LooksSecret(path.Base(at)), path.Base(at) == ".git":
		return nil
	case info.IsDir() && depth > 0:
		entries, err := fs.ReadDir(root.FS(), at)
		if err != nil && !missing(err) {
			return err
		}
		for _, entry := range entries {
			if err := b.take(root, path.Join(at, entry.Name()), path.Join(name, entry.Name()), depth-1); err != nil {
				return err
			}
		}
		return nil
	case !info.Mode().IsRegular():
		return nil
	}
	text, mode, err := read(root, at, bytesBrought-b.bytes)
	if b.bytes += len(text); len(b.files) >= mostBrought || errors.Is(err, errTooLong) {
		return fmt.Errorf("it is more than %d files or %d MB: move what is no instruction elsewhere, or use --preset FILE", mostBrought, bytesBrought>>20)
	}
	if err != nil || text == nil {
		return err
	}
	b.files[name] = string(text)
	if mode&0o111 != 0 {
		b.programs = append(b.programs, name)
	}
	return nil
}

var errTooLong = errors.New("it is too long")

// read reads a regular file below root of at most so many bytes; nil if there is none.
func read(root *os.Root, name string, most int) (text []byte, mode fs.FileMode, err error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which does not wait at a FIFO
	if missing(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, err
	}
	if text, err = io.ReadAll(io.LimitReader(file, int64(most)+1)); err == nil && len(text) > most {
		err = errTooLong
	}
	return append([]byte{}, text...), info.Mode(), err
}

// missing reports whether an error says that the user has no such file, or none that can be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// hideSettings hides what the projects that a host starts in would have it run, unless its user trusts them outside: it does not ask inside.
func (a *app) hideSettings(program *schema.Program, host *preset.Host, projects []string) {
	s := program.Sandbox
	if host.Project == "" || s.Named() == "off" {
		return
	}
	home, _ := os.UserHomeDir()
	text, _ := os.ReadFile(filepath.Join(home, host.Settings.File)) // without one, nothing is trusted
	for _, project := range projects {
		at := filepath.Join(project, host.Project)
		if _, err := os.Lstat(at); err != nil {
			continue
		}
		if level, err := hostfile.Value(text, "projects", project, "trust_level"); err == nil && level == "trusted" {
			continue
		}
		s.Hide = append(s.Hide, at)
		a.note("%s is hidden, since %s would run what it says unasked: it is shown if you trust the project in %s outside", view.Escaped(at), host.Name, host.Name)
	}
}

// kept returns a file of settings with the members that come along; nil if there are none, or if it cannot be read: the host says so outside.
func kept(s *preset.Settings, text []byte) []byte {
	var out []byte
	isTOML := filepath.Ext(s.File) == ".toml"
	for _, name := range s.Members {
		switch {
		case !isTOML:
			if value, err := hostfile.Member(text, name); err == nil && value != nil {
				out = view.Object(out).Raw(name, bytes.TrimSpace(value))
			}
		default:
			switch value, _ := hostfile.Value(text, name); v := value.(type) { // of a file that cannot be read there is none
			case string:
				out = fmt.Appendf(out, "%s = %s\n", name, schema.AppendString(nil, v))
			case bool, int64:
				out = fmt.Appendf(out, "%s = %v\n", name, v)
			}
		}
	}
	if !isTOML && out != nil {
		out = append(view.Object(out).Close(), '\n')
	}
	return out
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

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
	home     string            // of the user
	files    map[string]string // by name below the home
	settings map[string]string // the same, in place of those of the preset
	programs []string          // files that may be executed
	names    []string          // of the preset, that there are
	bytes    int
}

// bring reads what the preset of a host names of its user's set-up. Links are followed: they are the user's own.
func bring(host *preset.Host, home string) (*brought, error) {
	b := &brought{home: home, files: make(map[string]string), settings: make(map[string]string)}
	for _, name := range host.Brings {
		before := len(b.files)
		if err := b.take(name, deepBrought); err != nil {
			return nil, fmt.Errorf("bring ~/%s along: %w", name, err)
		}
		if len(b.files) > before {
			b.names = append(b.names, name)
		}
	}
	if name := host.Settings.File; name != "" {
		text, err := os.ReadFile(filepath.Join(home, name))
		if err == nil {
			text = kept(&host.Settings, text)
		} else if !missing(err) {
			return nil, err
		}
		if len(text) > 0 {
			b.settings[name] = string(text)
		}
	}
	return b, nil
}

// take reads a file, or the files of a directory.
func (b *brought) take(name string, depth int) error {
	at := filepath.Join(b.home, name)
	info, err := os.Stat(at)
	switch {
	case missing(err), err == nil && held.LooksSecret(path.Base(name)):
		return nil
	case err != nil:
		return err
	case info.IsDir() && depth > 0:
		entries, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Name() == ".git" {
				continue
			}
			if err := b.take(path.Join(name, entry.Name()), depth-1); err != nil {
				return err
			}
		}
		return nil
	case !info.Mode().IsRegular():
		return nil
	}
	b.bytes += int(min(info.Size(), bytesBrought+1))
	if len(b.files) >= mostBrought || b.bytes > bytesBrought {
		return fmt.Errorf("it is more than %d files or %d MB: move what is no instruction elsewhere, or use --preset FILE", mostBrought, bytesBrought>>20)
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	b.files[name] = string(text)
	if info.Mode()&0o111 != 0 {
		b.programs = append(b.programs, name)
	}
	return nil
}

// missing reports whether an error says that the user has no such file, or none that can be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
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

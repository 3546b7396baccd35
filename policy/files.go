package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is one file of rules.
type File struct {
	Name string // for display: relative to the configuration's directory
	Text []byte
}

// maxFile bounds a file, in bytes.
const maxFile = 1 << 20

// Paths returns the paths of a configuration's rules, which may not exist: a file, and a directory of further files.
func Paths(config string) (file, dir string) {
	at := filepath.Dir(config)
	return filepath.Join(at, "policy.cedar"), filepath.Join(at, "policy.d")
}

// Profiles returns the directory of a configuration's profiles, with their rules.
func Profiles(config string) string { return filepath.Join(filepath.Dir(config), "profiles") }

// Read reads policy.cedar, policy.d/*.cedar and profiles/*.cedar of a configuration, in this order, those of a
// directory by name. The list is empty if none exists; config "" means that there is no configuration.
func Read(config string) ([]File, error) {
	if config == "" {
		return nil, nil
	}
	file, dir := Paths(config)
	var files []File
	one, err := readFile(file)
	switch {
	case err == nil:
		files = append(files, File{filepath.Base(file), one})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, dir := range []string{dir, Profiles(config)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		for _, e := range entries { // sorted by name
			if !strings.HasSuffix(e.Name(), ".cedar") || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			text, err := readFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			files = append(files, File{filepath.Base(dir) + "/" + e.Name(), text})
		}
	}
	return files, nil
}

// ReadFiles reads the named files.
func ReadFiles(paths []string) ([]File, error) {
	files := make([]File, 0, len(paths))
	for _, path := range paths {
		if slices.ContainsFunc(files, func(f File) bool { return f.Name == path }) {
			return nil, fmt.Errorf("%s is named twice", path)
		}
		text, err := readFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, File{path, text})
	}
	return files, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened, since a pipe would block
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read policy: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("read policy: %s has more than %d bytes", path, maxFile)
	}
	return text, nil
}

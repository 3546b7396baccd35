// Package agenthome keeps the private home directory that each agent name has. The programs that work in a home may have put
// anything there, so that nothing is followed out of it, and what programs read by themselves at a start is written again at each start.
package agenthome

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Store is the directory of all homes.
type Store string

// seeds is the directory with what is put into homes at each start. No name of an agent is encoded like that.
const seeds = "%seeds"

// cache is the directory that agents share for caches, with a name that no agent has either.
const cache = "%cache"

// Cache returns the directory for caches, which it makes if there is none.
func (s Store) Cache() (string, error) {
	if err := os.MkdirAll(filepath.Join(string(s), cache), 0o700); err != nil {
		return "", fmt.Errorf("make directory for caches: %w", err)
	}
	dir, err := filepath.EvalSymlinks(string(s)) // the kernel accepts no symbolic link
	if err != nil {
		return "", fmt.Errorf("make directory for caches: %w", err)
	}
	at := filepath.Join(dir, cache)
	if info, err := os.Lstat(at); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s should be the directory for caches, and is none: remove it", at)
	}
	return at, nil
}

// longest is the longest name of a file, in bytes.
const longest = 255

// encoded returns the name of a home's directory, which is different for each name of an agent and has no slash.
func encoded(name string) string {
	code := strings.NewReplacer("%", "%25", "/", "%2F").Replace(name)
	if rest, ok := strings.CutPrefix(code, "."); ok {
		code = "%2E" + rest
	}
	if len(code) > longest {
		sum := sha256.Sum256([]byte(name))
		end := "%x" + hex.EncodeToString(sum[:])
		code = code[:longest-len(end)] + end
	}
	return code
}

// Path returns where the home of an agent's name is.
func (s Store) Path(name string) string { return filepath.Join(string(s), encoded(name)) }

// List returns the names that have a home, sorted. A name that was too long is shown as its directory is called.
func (s Store) List() ([]string, error) {
	entries, err := os.ReadDir(string(s))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list homes: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() == seeds || entry.Name() == cache || !entry.IsDir() {
			continue
		}
		name, err := url.PathUnescape(entry.Name())
		if err != nil || encoded(name) != entry.Name() {
			name = entry.Name()
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Remove removes a home, and what is put into it at each start. No agent may use it. The error wraps fs.ErrNotExist if there
// is none.
func (s Store) Remove(name string) (err error) {
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return fmt.Errorf("open homes: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	code := encoded(name)
	if _, err := root.Lstat(code); err != nil {
		code = name // as List shows one that was too long
		if strings.ContainsAny(name, "/") || strings.HasPrefix(name, ".") || name == seeds {
			return err
		}
		if _, err := root.Lstat(code); err != nil {
			return err
		}
	}
	return errors.Join(remove(root, code), remove(root, path.Join(seeds, code)))
}

// Home is an open home.
type Home struct {
	Path string // without symbolic links
	root *os.Root
	seed string
}

// Open opens the home of an agent's name, which it makes if there is none.
func (s Store) Open(name string) (*Home, error) {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	dir, err := filepath.EvalSymlinks(string(s)) // the kernel accepts no symbolic link
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	at := Store(dir).Path(name)
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make home: %w", err)
	}
	if info, err := os.Lstat(at); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s should be the home of agents named %q, and is no directory: remove it", at, name)
	}
	h, err := At(at)
	if err == nil {
		h.seed = filepath.Join(dir, seeds, encoded(name))
	}
	return h, err
}

// At opens a directory of the user's as a home. Nothing in it is renewed.
func At(dir string) (*Home, error) {
	dir, err := filepath.EvalSymlinks(dir) // the kernel accepts no symbolic link
	if err != nil {
		return nil, fmt.Errorf("find home directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open home: %w", err)
	}
	return &Home{Path: dir, root: root}, nil
}

// Close closes the home.
func (h *Home) Close() error { return h.root.Close() }

// Renew renews what programs read by themselves at a start: it removes that, and what is in the directories of PATH in the
// home, and writes what was imported, and else these files. A home that the user has named only gets the files that are missing.
func (h *Home) Renew(files map[string]string, searchPath string) error {
	if h.seed == "" {
		for name, text := range files {
			if _, err := h.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				if err := h.write(name, []byte(text)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	want := make(map[string][]byte)
	for name, text := range files {
		want[name] = []byte(text)
	}
	imported, err := h.imported()
	if err != nil {
		return err
	}
	maps.Copy(want, imported)
	names, err := h.readAtStart(searchPath)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, keep := want[name]; keep {
			continue
		}
		if err := h.parents(name, false); err != nil {
			return err
		}
		if err := remove(h.root, name); err != nil {
			return fmt.Errorf("renew %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := h.write(name, want[name]); err != nil {
			return err
		}
	}
	return nil
}

// imported returns the files that Import has kept for each start.
func (h *Home) imported() (map[string][]byte, error) {
	root, err := os.OpenRoot(h.seed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was imported: %w", err)
	}
	files := make(map[string][]byte)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[name], err = root.ReadFile(name)
		}
		return err
	})
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("read what was imported: %w", err)
	}
	return files, nil
}

// maxImport bounds an imported file, in bytes.
const maxImport = 64 << 20

// Import copies a regular file to a name in the home. What is renewed at each start is kept outside, and put there at each.
func (h *Home) Import(from, name string) error {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxImport+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if len(text) > maxImport {
		return fmt.Errorf("import: %s has more than %d bytes", from, maxImport)
	}
	if h.seed == "" || !isReadAtStart(name) {
		return h.write(name, text)
	}
	if err := os.MkdirAll(h.seed, 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	kept, err := At(h.seed)
	if err != nil {
		return err
	}
	return errors.Join(kept.write(name, text), kept.Close())
}

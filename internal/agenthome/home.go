// Package agenthome keeps the private home directory that each agent name has. The programs that work in a home may have put
// anything there, so that nothing is followed out of it. Whoever starts an agent says what its home begins with (Prepare), and the
// kernel writes that again before each start, also one of its own (Renew).
package agenthome

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/internal/rmtree"
)

// Store is the directory of all homes.
type Store string

// Directories of the store that are no homes. No name of an agent is encoded like that.
const (
	seeds    = "%seeds"    // what was imported, for each start
	renewals = "%renewals" // what else each start begins with: an archive for each home
	cache    = "%cache"    // caches that agents share
	users    = "%users"    // a store for each user that programs run as, other than by default
)

// isHome reports whether a directory of the store is a home by its name.
func isHome(code string) bool { return !strings.HasPrefix(code, "%") || strings.HasPrefix(code, "%2") }

// CacheDir returns where the directory for caches is.
func (s Store) CacheDir() string { return filepath.Join(string(s), cache) }

// Of returns the store of the homes in which programs run as another user than by default. Each user has homes of their own: the files of
// another's could not be read, and are not to be believed.
func (s Store) Of(uid int) Store {
	return Store(filepath.Join(string(s), users, strconv.Itoa(uid)))
}

// Users returns the users that have a store.
func (s Store) Users() (list []int, err error) {
	entries, err := os.ReadDir(filepath.Join(string(s), users))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list homes: %w", err)
	}
	for _, entry := range entries {
		if uid, err := strconv.Atoi(entry.Name()); err == nil && uid >= 0 {
			list = append(list, uid)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Cache returns the directory for caches, which it makes if there is none.
func (s Store) Cache() (string, error) {
	if err := os.MkdirAll(s.CacheDir(), 0o700); err != nil {
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

// longest is the longest name of a home's directory, in bytes. Beside it, a file while it is written has a longer one, of at most 255.
const longest = 200

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

// Around returns the home of the store, or of another user's store in it, that a path is in, or is; "" if it is in none. Only the kernel
// changes what is above a home, so that no link leads out of it.
func (s Store) Around(at string) string {
	rel, below := strings.CutPrefix(filepath.Clean(at), string(s)+"/")
	code, rest, _ := strings.Cut(rel, "/")
	switch {
	case below && isHome(code):
		return filepath.Join(string(s), code)
	case below && code == users:
		uid, _, _ := strings.Cut(rest, "/")
		if _, err := strconv.Atoi(uid); err == nil {
			return Store(filepath.Join(string(s), users, uid)).Around(at)
		}
	}
	return ""
}

// List returns the names that have a home, sorted. A name that was too long is shown as its directory is called.
func (s Store) List() ([]string, error) {
	entries, err := os.ReadDir(string(s))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list homes: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !isHome(entry.Name()) || !entry.IsDir() {
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
		if strings.ContainsAny(name, "/") || strings.HasPrefix(name, ".") || !isHome(name) {
			return err
		}
		if _, err := root.Lstat(code); err != nil {
			return err
		}
	}
	return errors.Join(rmtree.Below(root, code), rmtree.Below(root, path.Join(seeds, code)), rmtree.Below(root, path.Join(renewals, code)))
}

// Home is an open home.
type Home struct {
	Path  string // without symbolic links
	root  *os.Root
	store Store // "": it is a directory of the user's
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
		h.store = Store(dir)
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

// beside returns where the store keeps something of the home, outside of it.
func (h *Home) beside(dir string) string {
	return filepath.Join(string(h.store), dir, filepath.Base(h.Path))
}

// imported returns the files that Import has kept for each start.
func (h *Home) imported() (map[string]file, error) {
	root, err := os.OpenRoot(h.beside(seeds))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was imported: %w", err)
	}
	files := make(map[string]file)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var text []byte
			text, err = root.ReadFile(name)
			files[name] = file{text, plainMode}
		}
		return err
	})
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("read what was imported: %w", err)
	}
	return files, nil
}

// Has reports whether there is something at a name in the home.
func (h *Home) Has(name string) (bool, error) {
	_, err := h.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", name, err)
	}
	return true, nil
}

// maxImport bounds an imported file, in bytes.
const maxImport = 64 << 20

// Import copies a regular file to a name in the home. What is renewed at each start is kept outside, and put there at each.
func (h *Home) Import(from, name string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(source, maxImport+1))
	if err = errors.Join(err, source.Close()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if len(text) > maxImport {
		return fmt.Errorf("import: %s has more than %d bytes", from, maxImport)
	}
	if h.store == "" || !isReadAtStart(name) {
		return h.write(name, file{text, plainMode})
	}
	if err := os.MkdirAll(h.beside(seeds), 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	kept, err := At(h.beside(seeds))
	if err != nil {
		return err
	}
	return errors.Join(kept.write(name, file{text, plainMode}), kept.Close())
}

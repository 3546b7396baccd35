package agenthome

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/internal/replace"
)

// file is a file that a start begins with.
type file struct {
	text []byte
	mode fs.FileMode
}

// plainMode is the mode of a file, and programMode that of one that may be executed.
const (
	plainMode   fs.FileMode = 0o600
	programMode fs.FileMode = 0o700
)

// Prepare sets the files that each start begins with, besides those that were imported, and which of them may be executed. A home that
// the user has named gets now those that it lacks.
func (h *Home) Prepare(files map[string]string, programs ...string) error {
	modeOf := func(name string) fs.FileMode {
		if slices.Contains(programs, name) {
			return programMode
		}
		return plainMode
	}
	if h.store == "" {
		for name, text := range files {
			if _, err := h.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				if err := h.write(name, file{[]byte(text), modeOf(name)}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var archive bytes.Buffer // one file, which a start finds old or new
	w := tar.NewWriter(&archive)
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: int64(modeOf(name)), Size: int64(len(files[name]))}))
		_, writeErr := w.Write([]byte(files[name]))
		err = errors.Join(err, writeErr)
	}
	err = errors.Join(err, w.Close())
	at := h.beside(renewals)
	if old, readErr := os.ReadFile(at); err == nil && readErr == nil && bytes.Equal(old, archive.Bytes()) {
		return nil
	}
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700)); err == nil {
		err = replace.File(at, archive.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("prepare home: %w", err)
	}
	return nil
}

// renewing is locked while a home is renewed: two agents of one name may start at once.
var renewing sync.Mutex

// Renew renews the home at a path, before the start of a program with a search path: it removes what programs read by themselves
// at a start, and what is in the directories of the search path in the home, and writes what was prepared and imported. A path that is
// no home of the store, or one that no start was prepared for, stays as it is.
func (s Store) Renew(at, searchPath string) (err error) {
	if dir := filepath.Dir(at); filepath.Dir(dir) == filepath.Join(string(s), users) {
		s = Store(dir) // another user's
	}
	if filepath.Dir(at) != string(s) || !isHome(filepath.Base(at)) {
		return nil
	}
	if info, err := os.Lstat(at); err != nil || !info.IsDir() {
		return nil // the start fails without it
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return fmt.Errorf("renew home: %w", errors.Unwrap(err)) // the client must not see the path
	}
	h := &Home{Path: at, root: root, store: s}
	defer func() { err = errors.Join(err, h.Close()) }()
	renewing.Lock()
	defer renewing.Unlock()
	want, err := h.prepared()
	if want == nil || err != nil {
		return err
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
		if err := h.parents(name, false); err != nil {
			return err
		}
		if err := h.removeExcept(name, want); err != nil {
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

// prepared returns the files that Prepare has set; nil if it never did.
func (h *Home) prepared() (map[string]file, error) {
	archive, err := os.ReadFile(h.beside(renewals))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files := make(map[string]file)
	for r := tar.NewReader(bytes.NewReader(archive)); err == nil; {
		var header *tar.Header
		if header, err = r.Next(); err == nil {
			var text []byte
			text, err = io.ReadAll(r)
			files[header.Name] = file{text, header.FileInfo().Mode().Perm()}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read what a home begins with: %w", err)
	}
	return files, nil
}

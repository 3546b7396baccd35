package trees

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/steps"
)

// keySize is that of the key that seals secret contents, in bytes.
const keySize = 32

// readKey returns the key that seals secret contents. It is made if there is none, and made again if it is incomplete and nothing is sealed.
func (t *Trees) readKey() ([]byte, error) {
	path := filepath.Join(t.dir, KeyName)
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == keySize:
		return key, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read key of steps: %w", err)
	case err == nil:
		sealed, err := t.sealed()
		if err != nil {
			return nil, fmt.Errorf("%s is no key of %d bytes: %w", path, keySize, err)
		}
		if sealed {
			return nil, fmt.Errorf("%s is no key of %d bytes: put it back from a copy, or remove it, which gives up the secret contents that are stored, and start the kernel again", path, keySize)
		}
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key)                                  // it never fails
	if err := replace.File(path, key, 0o600); err != nil { // the directory is synced with the first store in it
		return nil, fmt.Errorf("store key of steps: %w", err)
	}
	return key, nil
}

// sealed reports whether a store has contents that need the key.
func (t *Trees) sealed() (bool, error) {
	names, err := storesIn(t.dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if sealed, err := steps.Sealed(filepath.Join(t.dir, name)); sealed || err != nil {
			return sealed, err
		}
	}
	return false, nil
}

// forget removes what is older than it is to be kept, and what is more, soon and every hour.
func (t *Trees) forget() {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case <-t.ending.Done():
			return
		case <-timer.C:
			t.collect(time.Now().Add(-t.Keep))
			timer.Reset(time.Hour)
		}
	}
}

// removedName is the directory of stores that are being removed.
const removedName = "removed"

// collect forgets steps that ended before a time, and stores in which nothing happened since.
func (t *Trees) collect(before time.Time) {
	t.mu.Lock()
	all := t.all()
	t.mu.Unlock()
	for _, one := range all {
		if err := one.collect(t.ending, before); err != nil && t.ending.Err() == nil {
			t.log.Warn("old steps are not removed", "tree", one.root, "error", err)
		}
	}
	if err := errors.Join(t.discardStores(before), t.prompts.Forget(before)); err != nil {
		t.log.Warn("old steps are not removed", "error", err)
	}
}

// discardStores removes the stores of trees that are not open, in which nothing happened since a time.
func (t *Trees) discardStores(before time.Time) error {
	removed := filepath.Join(t.dir, removedName)
	if err := errors.Join(rmtree.Dir(removed), os.Mkdir(removed, 0o700)); err != nil { // what a crash has left
		return fmt.Errorf("remove old stores: %w", err)
	}
	entries, err := os.ReadDir(t.dir)
	for _, entry := range entries {
		err = errors.Join(err, t.aside(entry.Name(), before))
	}
	return errors.Join(err, rmtree.Dir(removed))
}

// aside moves a store to those that are being removed, unless its tree is open or was in use since a time. mu keeps the tree from being opened
// meanwhile.
func (t *Trees) aside(name string, before time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dir := filepath.Join(t.dir, name)
	for _, r := range t.reviews { // what a copy began with is needed until it ends
		if t.storeOf(r.copy()) == dir {
			return nil
		}
	}
	info, err := os.Stat(filepath.Join(dir, usedName))
	if err != nil || !info.ModTime().Before(before) || slices.ContainsFunc(t.all(), func(one *tree) bool { return one.dir == dir }) {
		return nil // without that file it is no store, or one that is being made
	}
	return os.Rename(dir, filepath.Join(t.dir, removedName, name))
}

package trees

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/steps"
)

// KeyName is the name of the file with the key that seals secret contents, in the directory of the stores.
const KeyName = "key"

// Captured is the stores of a directory at one moment, without the key. Close must follow.
type Captured struct {
	Files  []steps.SnapshotFile // their names begin with that of the store's directory
	Stores int
	Sealed bool // some contents need the key

	snapshots []*steps.Snapshot
}

// Capture opens the stores in a directory, while a kernel may use it. Those of trees in copies are left out: the copies are no part
// of a backup.
func Capture(dir, copies string) (_ *Captured, err error) {
	c := new(Captured)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	names, err := storesIn(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		root, err := os.ReadFile(filepath.Join(dir, name, rootName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is removed, or being made
		}
		if err != nil {
			return nil, fmt.Errorf("copy store of steps: %w", err)
		}
		if within(copies, string(root)) {
			continue
		}
		if err := c.add(dir, name, root); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Captured) add(dir, name string, root []byte) error {
	s, err := steps.Capture(journal.OSFS{}, filepath.Join(dir, name))
	if _, gone := os.Lstat(filepath.Join(dir, name)); errors.Is(gone, fs.ErrNotExist) && s == nil {
		return nil // it became too old meanwhile
	}
	if err != nil || s == nil {
		return err
	}
	c.snapshots = append(c.snapshots, s)
	c.Stores, c.Sealed = c.Stores+1, c.Sealed || s.Sealed
	// Nobody works in the tree when the copy is opened, whoever works in it now.
	c.Files = append(c.Files, steps.TextFile(name+"/"+rootName, root), steps.TextFile(name+"/"+usedName, []byte("[]")))
	for _, file := range s.Files {
		file.Name = name + "/" + file.Name
		c.Files = append(c.Files, file)
	}
	return nil
}

// Close closes the files.
func (c *Captured) Close() (err error) {
	for _, s := range c.snapshots {
		err = errors.Join(err, s.Close())
	}
	c.snapshots = nil
	return err
}

// storesIn returns the names of the directories that may be stores.
func storesIn(dir string) (names []string, _ error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for stores of steps: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != removedName {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Key returns the key of the stores in a directory; nil if there is none, or none that is whole.
func Key(dir string) ([]byte, error) {
	key, err := os.ReadFile(filepath.Join(dir, KeyName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(key) != keySize {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key of steps: %w", err)
	}
	return key, nil
}

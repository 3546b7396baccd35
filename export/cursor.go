package export

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Cursor is a file with the position of an export. Move replaces the file atomically. The lock is on a file next to it,
// NAME.lock, which stays.
type Cursor struct {
	path string
	lock *os.File
	at   Position
}

// OpenCursor reads a cursor, if it exists, and locks it until Close. It returns a fault.ExportBusy or
// fault.ExportUnreadable.
func OpenCursor(path string) (_ *Cursor, err error) {
	c := &Cursor{path: path}
	if c.lock, err = lockedFile(path+".lock", path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cursor: %w", err)
	}
	var at *Position
	if text = bytes.TrimSpace(text); schema.Valid(text) {
		at = decoded[Position](text)
	}
	if at == nil || !at.valid() {
		return nil, fault.ExportUnreadable.New(`%s is not a cursor of an export, which is one line such as {"instance":"…","epoch":1,"seq":42}: nothing was changed; name another file`, path)
	}
	c.at = *at
	return c, nil
}

// lockedFile opens and locks the file path, and creates it if it does not exist. what is the protected file, for
// errors.
func lockedFile(path, what string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", what, err)
	}
	switch err := lockfile.Try(f); {
	case errors.Is(err, lockfile.ErrHeld):
		return nil, errors.Join(fault.ExportBusy.New("another export uses %s: end it, or name another file", what), f.Close())
	case err != nil:
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// At returns the position of the last delivered entry.
func (c *Cursor) At() Position { return c.at }

// Move writes a new position.
func (c *Cursor) Move(at Position) error {
	text, err := schema.Marshal(&at)
	if err == nil {
		err = replace.File(c.path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("move cursor: %w", err)
	}
	c.at = at
	return nil
}

// Close unlocks the cursor.
func (c *Cursor) Close() error { return lockfile.Release(c.lock) }

package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

var (
	// ErrNoSnapshot says that there is no snapshot of that name.
	ErrNoSnapshot = errors.New("no such snapshot")

	// ErrDamaged says that what the file holds is not what was written to it. DropSnapshots or DropIndex mends that; where
	// a call that writes returns it, the file has been made anew, and the same call may succeed now.
	ErrDamaged = errors.New("store damaged")

	// ErrFormat says that the file is of another format than this package writes. Only Options.Trouble is told it.
	ErrFormat = errors.New("store has another format")

	// ErrForeign says that the file is about entries that the journal does not have: it belongs to another journal, or
	// the journal lost its end. Only Options.Trouble is told it.
	ErrForeign = errors.New("store is not of this journal")

	// ErrLocked says that another process, or another Store of this one, has the file open.
	ErrLocked = errors.New("store is in use")

	// ErrClosed says that Close was called.
	ErrClosed = errors.New("store closed")

	// ErrOrder says that an entry given to an Indexer is not the one that follows, or that the index was changed under it.
	ErrOrder = errors.New("index out of order")
)

// classify makes ErrDamaged recognisable among SQLite's errors.
func classify(err error) error {
	if damaged(err) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// damaged reports whether err says that the file is not what it was.
func damaged(err error) bool {
	if errors.Is(err, ErrDamaged) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_FORMAT:
		return true
	}
	// A file that is shorter than its header says is met as a read that comes up short.
	return e.Code() == codes.SQLITE_IOERR_SHORT_READ
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// A Store is the projections, open. Its methods may be called from any goroutine, all at once.
//
// A context that is done ends waits and stops work between two rows, not inside one; then nothing was changed.
type Store struct {
	path string
	opt  Options
	lock *os.File // the database file; its descriptor outlives every connection

	// mu is held for reading by every call while it runs, for writing while the file is closed or made anew.
	mu     sync.RWMutex
	closed bool
	db     *database // nil where the last attempt to make the file anew failed
}

// Open opens the projections in the file path, whose directory must exist, and makes the file where it is missing. What
// cannot be used is dropped and made anew (Options). Errors: ErrLocked where another Store has the file, and what the
// operating system says of a directory or file that cannot be written; a kernel may then run without a Store.
func Open(path string, o Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{path: path, opt: o.withDefaults(), lock: lock}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) start() error {
	err := s.connect()
	if unusable(err) {
		err = s.remake(err)
	}
	if err != nil {
		return err
	}
	err = s.dropForeign(context.Background())
	if unusable(err) {
		err = s.remake(err)
	}
	return err
}

// Close waits for the calls that are running, folds the write-ahead log into the file and lets it go. It may be called
// again and does nothing then; every other call returns ErrClosed afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.disconnect()
	return errors.Join(err, lockfile.Release(s.lock))
}

// connect opens the connections. It needs mu, or a Store that nobody else has yet.
func (s *Store) connect() error {
	db, err := openDatabase(s.path)
	s.db = db
	return err
}

func (s *Store) disconnect() error {
	if s.db == nil {
		return nil
	}
	err := s.db.close()
	s.db = nil
	return err
}

// remake throws all that the file holds away and begins it again. The file itself stays, and so does the lock on it. What
// cause says is told to Trouble; the error is about the remaking. It needs mu, or a Store that nobody else has yet.
func (s *Store) remake(cause error) error {
	_ = s.disconnect() // what cannot be read need not be folded in either
	err := emptyFile(s.lock, s.path)
	if err == nil {
		err = s.connect()
	}
	if err != nil {
		return fmt.Errorf("make store anew, as %w: %w", cause, err)
	}
	s.opt.Trouble(fmt.Errorf("store made anew: %w", cause))
	return nil
}

// begin holds mu for reading and returns the database; the caller calls s.mu.RUnlock where the error is nil.
func (s *Store) begin() (*database, error) {
	for {
		s.mu.RLock()
		if s.db != nil {
			return s.db, nil
		}
		s.mu.RUnlock()
		if err := s.reconnect(); err != nil {
			return nil, err
		}
	}
}

// reconnect tries again what remake could not do, for want of room perhaps.
func (s *Store) reconnect() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.db != nil:
		return nil
	}
	err := s.connect()
	if unusable(err) {
		err = s.remake(err)
	}
	return err
}

// update runs do in a transaction of the one connection that writes. Where the file turns out to be damaged it is made
// anew, so that the next update can succeed; the error still says that this one has not.
func (s *Store) update(ctx context.Context, do func(*sql.Conn) error) error {
	db, err := s.begin()
	if err != nil {
		return err
	}
	err = func() error {
		defer s.mu.RUnlock() // also where do panics
		return classify(db.update(ctx, do))
	}()
	if damaged(err) {
		err = errors.Join(err, s.replace(db, err))
	}
	return err
}

// replace remakes the file unless that has been done since db was met damaged.
func (s *Store) replace(db *database, cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.db != db {
		return nil
	}
	return s.remake(cause)
}

// drop runs do, which throws a projection away; making the file anew does that as well.
func (s *Store) drop(ctx context.Context, do func(*sql.Conn) error) error {
	err := s.update(ctx, do)
	if !damaged(err) {
		return err
	}
	return s.update(ctx, do)
}

// view runs do in a transaction that reads: it sees one state of the file from beginning to end.
func (s *Store) view(ctx context.Context, do func(*sql.Conn) error) error {
	db, err := s.begin()
	if err != nil {
		return err
	}
	defer s.mu.RUnlock()
	return classify(db.view(ctx, do))
}

// Package index keeps what of the journal needs not be read again, by a start or by a question.
//
// All of it can be made anew from the journal, so losing it costs a replay and never data. In one directory, mode 0700, are:
//
//   - NAME.snapshot: the state of a part of the kernel as it was at one entry of the journal, in a file with a
//     SHA-256. A start loads it and replays only what came after.
//   - index.db: for each block of 256 entries a row that says which processes, types, ids, correlations, causes, keys
//     of the memory, refusals and times are in it; the end of an effect counts as the call that it ends. A question to the audit log reads the blocks that can
//     hold what it asks for.
//   - search.db: for each call a document of its words, for a search: the call, its process, origin and correlation, an
//     error's text, and the beginning of what the journal keeps of its data.
//
// Beside the two are SQLite's logs, such as index.db-wal and index.db-shm, until Close.
//
// # What it promises
//
//   - A snapshot is the old one or the new one, never a mixture, whenever the process or the machine stops. Load
//     calls restore only once the checksum of the whole file fits, and the journal has the entry.
//   - Ranges never leaves out an entry that fits the filter: what is not indexed is always part of the answer. Each
//     row has a checksum; where one does not fit, the answer is ErrDamaged, never a shorter one.
//   - Search leaves out no call either, but where its file was altered so that SQLite does not notice. It has no more than
//     the journal, and nothing of an entry that was rewritten since, once Forget was called for it.
//   - An index that is no database, is damaged, of another format or of another journal is thrown away and made anew.
//   - Memory does not grow with what is stored: it is a few times the longest chunk of a snapshot, and some hundred
//     KiB.
//   - On a full disk a call returns an error, what was there before is still there, and a later call may succeed.
//
// # What it does not promise
//
//   - That the last rows survive power loss: commits are not synced one by one (synchronous=NORMAL).
//   - Protection from a process that alters a file on purpose: the checksums find accidents, not forgers.
//   - That two processes can have the same directory: the lock of the journal keeps a second kernel away.
package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/promptware-os/pwos/journal"
)

var (
	// ErrNoSnapshot says that there is no snapshot of that name and of Options.Form.
	ErrNoSnapshot = errors.New("no such snapshot")

	// ErrDamaged says that what a file holds is not what was written to it. Drop makes the index anew.
	ErrDamaged = errors.New("file damaged")

	// ErrFormat says that the index is of another format than this package writes. Only Options.Trouble gets it.
	ErrFormat = errors.New("index has another format")

	// ErrForeign says that the journal does not have the entry that a file is of: the file belongs to another journal, or the
	// journal lost its end.
	ErrForeign = errors.New("not of this journal")

	// ErrClosed says that Close was called.
	ErrClosed = errors.New("index closed")

	// ErrOrder says that a block is not the one that follows what is indexed.
	ErrOrder = errors.New("index out of order")
)

// Options say which journal the index is of.
type Options struct {
	FS  journal.FS // of the journal; nil means journal.OSFS
	Dir string     // the journal's directory; "" means that nothing is compared with a journal

	// Synced is (*journal.Log).Synced: no entry past it is read. nil means whatever the files hold.
	Synced func() uint64

	// Await is (*journal.Log).AwaitSynced, in which Follow waits for the next block. nil means that it looks every Poll.
	Await func(ctx context.Context, seq uint64)

	// Form is what a snapshot depends on beside the journal: one of another form is not loaded.
	Form string

	// Poll is how often Follow looks for more entries where it has to; 0 means every second.
	Poll time.Duration

	// Name is the name of a process, "" where it has none. It may be called at any time. nil means that no names are known.
	Name func(pid int64) string

	// Now and Sleep are the clock; nil means the real one. Sleep returns early when ctx is done.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)

	// Trouble gets the errors after which work went on: an index that was thrown away, a commit that is tried again. It
	// must not call the Index. nil means that they are dropped.
	Trouble func(error)
}

func (o Options) withDefaults() Options {
	if o.Synced == nil {
		o.Synced = func() uint64 { return OpenEnd }
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	return o
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Index is an open directory. Its methods may be called from any goroutine.
type Index struct {
	dir string
	opt Options

	// mu is locked for reading by every call, for writing while the database is closed or made anew.
	mu     sync.RWMutex
	closed bool
	blocks database
	words  database
}

// Open opens the index in dir, which it makes where it is missing; the directory above must exist. An index that cannot be
// used is made anew, with its reason to Options.Trouble. It returns what the operating system says of a directory or file
// that cannot be written, or of the journal; a kernel may then run without an Index.
func Open(dir string, o Options) (*Index, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x := &Index{dir: dir, opt: o.withDefaults()}
	x.blocks = database{path: filepath.Join(dir, "index.db"), version: blocksVersion, tables: blocksTables}
	x.words = database{path: filepath.Join(dir, "search.db"), version: wordsVersion, tables: wordsTables}
	if err := x.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open index: %w", err), x.Close())
	}
	return x, nil
}

func (x *Index) open() error {
	if err := os.Mkdir(x.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := x.removeTemporary(); err != nil {
		return err
	}
	for _, one := range []struct {
		db   *database
		mark func(context.Context) (journal.Head, error)
	}{{&x.blocks, x.Watermark}, {&x.words, x.Searchable}} {
		err := one.db.connect()
		if err == nil {
			err = x.checkJournal(one.mark)
		}
		if errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat) || errors.Is(err, ErrForeign) {
			cause := err
			if err = x.drop(one.db); err == nil {
				x.opt.Trouble(fmt.Errorf("index is made anew: %w", cause))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkJournal compares the end of what is indexed with the journal.
func (x *Index) checkJournal(watermark func(context.Context) (journal.Head, error)) error {
	mark, err := watermark(context.Background())
	if err != nil {
		return err
	}
	return x.check(mark)
}

// check returns ErrForeign where the journal does not have an entry.
func (x *Index) check(at journal.Head) error {
	if x.opt.Dir == "" {
		return nil
	}
	held, err := InJournal(x.opt.FS, x.opt.Dir, x.opt.Synced, at)
	if err == nil && !held {
		err = fmt.Errorf("entry %d: %w", at.Seq, ErrForeign)
	}
	return err
}

// Close waits for the calls that are running and closes the database. It may be called again and does nothing then; every
// other call returns ErrClosed afterwards.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return errors.Join(x.blocks.disconnect(), x.words.disconnect())
}

// Drop throws the index of blocks away, also where it is damaged, and makes an empty one. Follow begins again with the
// first entry.
func (x *Index) Drop() error { return x.drop(&x.blocks) }

func (x *Index) drop(db *database) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	if err := db.remake(); err != nil {
		return fmt.Errorf("drop index: %w", err)
	}
	return nil
}

// use calls do with a database.
func (x *Index) use(db *database, do func(*sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case x.closed:
		return ErrClosed
	case db.db == nil:
		return fmt.Errorf("%w: the index could not be made anew", ErrDamaged)
	}
	return classify(do(db.db))
}

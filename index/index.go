// Package index stores data derived from the journal, so that neither a start nor a query reads the whole journal. It
// can be rebuilt from the journal: its loss costs a replay, never data. One directory, mode 0700, has:
//
//   - NAME.snapshot: the state of a part of the kernel as of one entry of the journal, in a file with a SHA-256. A
//     start loads it and replays only later entries.
//   - index.db: for each block of 256 entries a row with its processes, types, ids, correlations, causes, memory keys,
//     refusals and times. The end of an effect counts as the call that it ends. A query to the audit log reads only
//     blocks that can hold matching entries. For each span of 16 blocks a row with the processes whose tokens change,
//     so that the last grant of a process is found fast.
//   - search.db: for each call a document of its words, for a search: the call, its process, origin and correlation, an
//     error's text, and the beginning of its data in the journal. Until Close, SQLite's logs are beside them, such as
//     index.db-wal and index.db-shm.
//
// # What it promises
//
//   - A snapshot is replaced atomically, also if the process or the machine stops. Load calls restore only if the
//     checksum of the whole file matches and the journal has the entry.
//   - Ranges never leaves out a matching entry: entries that are not indexed are always part of the answer. Each row
//     has a checksum. If one does not match, the answer is ErrDamaged, never an incomplete result.
//   - Search leaves out no call either, unless its file was altered in a way that SQLite does not detect. It has no
//     text that the journal does not have; for an entry that is rewritten that holds after Forget.
//   - An index that is not a database, is damaged, or belongs to another format or journal is rebuilt.
//   - Memory does not grow with the stored data: it is a few times the longest chunk of a snapshot, plus a few hundred
//     KiB.
//   - On a full disk a call returns an error, loses no earlier data, and may succeed later.
//
// # What it does not promise
//
//   - That the last rows survive power loss: commits are not synced one by one (synchronous=NORMAL).
//   - Protection from a process that alters a file on purpose: the checksums detect accidents, not forgery.
//   - That two processes can use the same directory: the lock of the journal keeps a second kernel out.
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
	// ErrNoSnapshot means that there is no snapshot with that name and Options.Form.
	ErrNoSnapshot = errors.New("no such snapshot")

	// ErrDamaged means that the content of a file was altered. Drop rebuilds the index.
	ErrDamaged = errors.New("file damaged")

	// ErrFormat means that the index has another format than this package writes. Only Options.Trouble gets it.
	ErrFormat = errors.New("index has another format")

	// ErrForeign means that the journal does not have the entry that a file names: the file belongs to another journal,
	// or the end of the journal was lost.
	ErrForeign = errors.New("not of this journal")

	// ErrClosed means that Close was called.
	ErrClosed = errors.New("index closed")

	// ErrOrder means that a block does not follow the watermark.
	ErrOrder = errors.New("index out of order")
)

// Options describe the journal of the index.
type Options struct {
	FS  journal.FS // of the journal; nil means journal.OSFS
	Dir string     // the journal's directory; "" means that there is no journal to compare with

	// Synced is (*journal.Log).Synced: no entry after it is read. nil means to read the files to their ends.
	Synced func() uint64

	// Await is (*journal.Log).AwaitSynced, with which Follow waits for the next block. nil means that it polls every
	// Poll.
	Await func(ctx context.Context, seq uint64)

	// Form identifies everything besides the journal that a snapshot depends on. A snapshot with another Form is not
	// loaded.
	Form string

	// Poll is the interval of polling without Await; 0 means one second.
	Poll time.Duration

	// Name returns the name of a process, "" if it has none. It may be called at any time. nil means that no names are
	// known.
	Name func(pid int64) string

	// Now and Sleep are the clock; nil means the real one. Sleep returns early when ctx is done.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)

	// Trouble is called with errors that the Index recovers from, such as a damaged index that it rebuilds or a commit
	// that it retries. It must not call the Index. nil means that they are dropped.
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

// Index is the open index. Its methods may be called from any goroutine.
type Index struct {
	dir string
	opt Options

	// mu is locked for reading by every call, for writing while the database is closed or rebuilt.
	mu     sync.RWMutex
	closed bool
	blocks database
	words  database
}

// Open opens the index in dir, and makes dir if it is missing; the parent directory must exist. It rebuilds an unusable
// index, and passes the reason to Options.Trouble. It returns the operating system's error if it cannot write a
// directory or file, or cannot read the journal; a kernel may then run without an Index.
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
			if err = x.dropDatabase(one.db); err == nil {
				x.opt.Trouble(fmt.Errorf("index is rebuilt: %w", cause))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkJournal returns ErrForeign if the journal does not have the entry of a watermark.
func (x *Index) checkJournal(watermark func(context.Context) (journal.Head, error)) error {
	mark, err := watermark(context.Background())
	if err != nil {
		return err
	}
	return x.check(mark)
}

// check returns ErrForeign if the journal does not have an entry.
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

// Close waits for running calls and closes the database. A second Close does nothing; every other call returns
// ErrClosed afterwards.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return errors.Join(x.blocks.disconnect(), x.words.disconnect())
}

// Drop deletes the index of blocks, even a damaged one, and makes an empty one. Follow starts again at the first entry.
func (x *Index) Drop() error { return x.dropDatabase(&x.blocks) }

// Clear deletes everything, durably, and makes an empty index. No Follow may run.
func (x *Index) Clear() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	_ = errors.Join(x.blocks.disconnect(), x.words.disconnect()) // an error does not matter: the data is deleted
	entries, err := os.ReadDir(x.dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(x.dir, entry.Name())))
	}
	err = errors.Join(err, journal.OSFS{}.SyncDir(x.dir), x.blocks.connect(), x.words.connect())
	if err != nil {
		return fmt.Errorf("clear index: %w", err)
	}
	return nil
}

func (x *Index) dropDatabase(db *database) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	if err := db.rebuild(); err != nil {
		return fmt.Errorf("drop index: %w", err)
	}
	return nil
}

// use calls do with an open database, unless the Index is closed.
func (x *Index) use(db *database, do func(*sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case x.closed:
		return ErrClosed
	case db.db == nil:
		return fmt.Errorf("%w: the index could not be rebuilt", ErrDamaged)
	}
	return classify(do(db.db))
}

// Package index keeps what of the journal needs not be read again, by a start or by a question.
//
// All of it can be made anew from the journal, so losing it costs a replay and never data. In one directory, mode 0700, are:
//
//   - NAME.snapshot: the state of a part of the kernel as it was at one entry of the journal, in a file with a
//     SHA-256. A start loads it and replays only what came after.
//   - index.db: for each block of 256 entries a row that says which processes, types, ids, correlations, causes, keys
//     of the memory, refusals and times are in it; the end of an effect counts as the call that it ends. A question to the audit log reads the blocks that can
//     hold what it asks for. Beside it are SQLite's logs, index.db-wal and index.db-shm, until Close.
//
// # What it promises
//
//   - A snapshot is the old one or the new one, never a mixture, whenever the process or the machine stops. Load
//     calls restore only once the checksum of the whole file fits, and the journal has the entry.
//   - Ranges never leaves out an entry that fits the filter: what is not indexed is always part of the answer. Each
//     row has a checksum; where one does not fit, the answer is ErrDamaged, never a shorter one.
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
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

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
	db     *sql.DB // nil where the last attempt to make it anew failed
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
	err := x.connect()
	if err == nil {
		err = x.checkJournal()
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat) || errors.Is(err, ErrForeign) {
		cause := err
		if err = x.Drop(); err == nil {
			x.opt.Trouble(fmt.Errorf("index is made anew: %w", cause))
		}
	}
	return err
}

// checkJournal compares the end of the index with the journal.
func (x *Index) checkJournal() error {
	mark, err := x.Watermark(context.Background())
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
	return x.disconnect()
}

func (x *Index) disconnect() error {
	if x.db == nil {
		return nil
	}
	err := x.db.Close()
	x.db = nil
	return err
}

// Drop throws the index away, also where it is damaged, and makes an empty one. Follow begins again with the first entry.
func (x *Index) Drop() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	_ = x.disconnect() // what is thrown away need not be written
	err := os.Truncate(x.path(), 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = x.connect()
	}
	if err != nil {
		return fmt.Errorf("drop index: %w", err)
	}
	return nil
}

func (x *Index) path() string { return filepath.Join(x.dir, "index.db") }

// version is of what tables does not say: what the blobs hold.
const version = 5

// tables is the schema of the database, as SQLite keeps their text. Another text, or version, is another format.
const tables = `CREATE TABLE blocks (block INTEGER PRIMARY KEY, hash BLOB NOT NULL, earliest INTEGER NOT NULL, ` +
	`latest INTEGER NOT NULL, terms BLOB NOT NULL, sum INTEGER NOT NULL)`

// connect opens the database and makes its tables where it is empty.
func (x *Index) connect() error {
	file, err := os.OpenFile(x.path(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		err = file.Chmod(0o600) // SQLite gives its logs the same mode
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if info.Size() == 0 { // whatever log is there belongs to a file that was dropped
		for _, log := range []string{"-wal", "-shm"} {
			if err := os.Remove(x.path() + log); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: x.path()}).EscapedPath() + "?" + url.Values{
		"mode": {"rw"}, "_busy_timeout": {"5000"}, "_journal_mode": {"WAL"},
		"_pragma": {"synchronous(NORMAL)", "cache_size(-1024)", "journal_size_limit(1048576)", "temp_store(MEMORY)", "trusted_schema(0)"},
	}.Encode())
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	if err := prepare(db); err != nil {
		return errors.Join(classify(err), db.Close())
	}
	x.db = db
	return nil
}

// prepare makes the tables in an empty database, and checks them in any other.
func prepare(db *sql.DB) error {
	var found string
	var as int
	if err := db.QueryRow("SELECT user_version, (SELECT ifnull(group_concat(sql, ';'), '') FROM sqlite_schema) FROM pragma_user_version").
		Scan(&as, &found); err != nil {
		return err
	}
	if as == 0 && found == "" {
		_, err := db.Exec(fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA user_version = %d; %s; COMMIT", version, tables))
		return err
	}
	if as != version || found != tables {
		return fmt.Errorf("%w: version %d", ErrFormat, as)
	}
	return nil
}

// use calls do with the database.
func (x *Index) use(do func(*sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case x.closed:
		return ErrClosed
	case x.db == nil:
		return fmt.Errorf("%w: the index could not be made anew", ErrDamaged)
	}
	return classify(do(x.db))
}

// classify makes ErrDamaged recognisable among SQLite's errors.
func classify(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_FORMAT:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	// A file that is shorter than its header says is met as a read that comes up short.
	if e.Code() == codes.SQLITE_IOERR_SHORT_READ {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

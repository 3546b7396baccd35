package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
)

// maxReaders is how many questions are answered at once; more wait.
const maxReaders = 4

// A database is the connections to one file: one that writes, some that read beside it.
type database struct {
	writer, readers *sql.DB
}

// openDatabase connects to a file that lockFile has made. It returns an error that unusable knows where the file has to be
// made anew.
func openDatabase(path string) (_ *database, err error) {
	db := new(database)
	defer func() {
		if err != nil {
			err = errors.Join(classify(err), db.close())
		}
	}()
	// A page of 8 KiB wastes little behind a posting list and makes the chain of a long part short. It is settled when the
	// file first becomes WAL, which the driver sees to after all of _pragma.
	if db.writer, err = connect(path, url.Values{"_journal_mode": {"WAL"}, "_pragma": {
		"page_size(8192)", "synchronous(NORMAL)", "cache_size(-4096)", "journal_size_limit(1048576)", "secure_delete(0)",
	}}); err != nil {
		return nil, err
	}
	db.writer.SetMaxOpenConns(1)
	if err := db.update(context.Background(), prepareFormat); err != nil {
		return nil, err
	}
	if db.readers, err = connect(path, url.Values{"_query_only": {"1"}, "_pragma": {"cache_size(-1024)"}}); err != nil {
		return nil, err
	}
	db.readers.SetMaxOpenConns(maxReaders)
	return db, nil
}

func connect(path string, q url.Values) (*sql.DB, error) {
	q.Set("mode", "rw")
	q.Set("_busy_timeout", "5000")
	for _, p := range []string{"temp_store(MEMORY)", "mmap_size(0)", "trusted_schema(0)"} {
		q.Add("_pragma", p)
	}
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	c, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// close lets the readers go first: the last connection is the one that folds the log into the file and removes it.
func (db *database) close() error {
	var err error
	if db.readers != nil {
		err = db.readers.Close()
	}
	if db.writer != nil {
		err = errors.Join(err, db.writer.Close())
	}
	return err
}

func (db *database) update(ctx context.Context, do func(*sql.Conn) error) error {
	return transact(ctx, db.writer, "BEGIN IMMEDIATE", do)
}

func (db *database) view(ctx context.Context, do func(*sql.Conn) error) error {
	return transact(ctx, db.readers, "BEGIN", do)
}

// transact runs do between begin and COMMIT. The statements themselves run without ctx, which is looked at in between: a
// commit that ctx interrupts half way would leave it open whether it happened.
func transact(ctx context.Context, pool *sql.DB, begin string, do func(*sql.Conn) error) (err error) {
	c, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(context.Background(), begin); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			rollback(c)
		}
	}()
	if err := do(c); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.ExecContext(context.Background(), "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

// rollback ends the transaction. SQLite does that by itself after some errors, a full disk among them, and then has
// nothing to roll back. A connection of which it is not certain that no transaction is open is not used again.
func rollback(c *sql.Conn) {
	if exec(c, "ROLLBACK") == nil || exec(c, "BEGIN", "ROLLBACK") == nil {
		return
	}
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
}

package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/promptware-os/pwos/internal/regular"
	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// database is one SQLite file. Its format is the SQL text of its tables, as SQLite stores it, and a version for
// everything that the text does not describe.
type database struct {
	path    string
	version int
	tables  string

	db *sql.DB // nil if the last attempt to rebuild it failed
}

func (d *database) disconnect() error {
	if d.db == nil {
		return nil
	}
	err := d.db.Close()
	d.db = nil
	return err
}

// rebuild deletes the database, even a damaged one, and makes an empty one.
func (d *database) rebuild() error {
	_ = d.disconnect() // an error does not matter: the data is deleted
	if err := os.Truncate(d.path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.connect()
}

// connect opens the database and makes its tables if it is empty.
func (d *database) connect() error {
	file, info, err := regular.Open(d.path, os.O_RDWR|os.O_CREATE) // SQLite creates its logs with the same mode
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if info.Size() == 0 { // an existing log belongs to a deleted file
		for _, log := range []string{"-wal", "-shm"} {
			if err := os.Remove(d.path + log); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: d.path}).EscapedPath() + "?" + url.Values{
		"mode": {"rw"}, "_busy_timeout": {"5000"}, "_journal_mode": {"WAL"},
		"_pragma": {"synchronous(NORMAL)", "cache_size(-1024)", "journal_size_limit(1048576)", "temp_store(MEMORY)", "trusted_schema(0)"},
	}.Encode())
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	if err := d.prepare(db); err != nil {
		return errors.Join(classify(err), db.Close())
	}
	d.db = db
	return nil
}

// prepare makes the tables of an empty database, and checks those of any other, except the shadow tables of a virtual
// table.
func (d *database) prepare(db *sql.DB) error {
	var found string
	var as int
	if err := db.QueryRow("SELECT user_version, (SELECT ifnull(group_concat(sql, ';'), '') FROM sqlite_schema WHERE name NOT GLOB 'calls_*') FROM pragma_user_version").
		Scan(&as, &found); err != nil {
		return err
	}
	if as == 0 && found == "" {
		_, err := db.Exec(fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA user_version = %d; %s; COMMIT", d.version, d.tables))
		return err
	}
	if as != d.version || found != d.tables {
		return fmt.Errorf("%w: version %d", ErrFormat, as)
	}
	return nil
}

// transact calls do in a transaction. ctx cancels its statements, but not the transaction itself: database/sql would
// roll that back in another goroutine, and Close would return while the connection is still open.
func transact(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// classify wraps SQLite's errors of a damaged file in ErrDamaged.
func classify(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_FORMAT:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	// A truncated file causes a short read.
	if e.Code() == codes.SQLITE_IOERR_SHORT_READ {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// What makes a file one of ours. A change of tables, or of what their blobs hold, takes another version; older files are
// not read but made anew.
const (
	applicationID = 0x70776f73 // "pwos"
	formatVersion = 2
)

// tables are in the order of their names, and their text is what SQLite keeps of them.
var tables = [...]struct{ name, sql string }{
	// A part is some chunks of a snapshot; its id is the snapshot's number times 2^32 plus its place from 0.
	{"parts", `CREATE TABLE parts (id INTEGER PRIMARY KEY, sum BLOB NOT NULL, data BLOB NOT NULL)`},
	// A run is RunEntries entries of the journal, counted from 1.
	{"runs", `CREATE TABLE runs (run INTEGER PRIMARY KEY, head BLOB NOT NULL, pids BLOB NOT NULL, types BLOB NOT NULL, correlations BLOB NOT NULL)`},
	{"snapshots", `CREATE TABLE snapshots (id INTEGER PRIMARY KEY, name TEXT NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL, ` +
		`tick INTEGER NOT NULL, parts INTEGER NOT NULL, chunks INTEGER NOT NULL, bytes INTEGER NOT NULL, sum BLOB NOT NULL)`},
}

// unusable reports whether err means that the file has to be made anew.
func unusable(err error) bool { return damaged(err) || errors.Is(err, ErrFormat) }

// prepareFormat makes the tables in an empty file, and checks that they are ours in any other.
func prepareFormat(c *sql.Conn) error {
	id, err := pragma(c, "application_id")
	if err != nil {
		return err
	}
	version, err := pragma(c, "user_version")
	if err != nil {
		return err
	}
	found, err := listTables(c)
	if err != nil {
		return err
	}
	if id == 0 && version == 0 && len(found) == 0 {
		return makeTables(c)
	}
	if id != applicationID || version != formatVersion {
		return fmt.Errorf("%w: application %#x, version %d", ErrFormat, id, version)
	}
	same := len(found) == len(tables)
	for i := 0; same && i < len(tables); i++ {
		same = found[i] == tables[i].sql
	}
	if !same {
		return fmt.Errorf("%w: its tables are not those of version %d", ErrFormat, version)
	}
	return nil
}

func makeTables(c *sql.Conn) error {
	statements := []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", formatVersion),
	}
	for _, t := range tables {
		statements = append(statements, t.sql)
	}
	for _, text := range statements {
		if _, err := c.ExecContext(context.Background(), text); err != nil {
			return fmt.Errorf("make tables: %w", err)
		}
	}
	return nil
}

func pragma(c *sql.Conn, name string) (value int64, err error) {
	err = c.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&value)
	return value, err
}

// listTables returns the text of everything that the file defines, tables, indices, views and triggers, by name.
func listTables(c *sql.Conn) (found []string, err error) {
	err = query(c, func(rows *sql.Rows) error {
		var text sql.NullString
		err := rows.Scan(&text)
		found = append(found, text.String)
		return err
	}, "SELECT sql FROM sqlite_schema ORDER BY name")
	return found, err
}

// query calls each with every row, in order, until one returns an error.
func query(c *sql.Conn, each func(*sql.Rows) error, text string, args ...any) error {
	rows, err := c.QueryContext(context.Background(), text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

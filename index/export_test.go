package index

import (
	"context"
	"database/sql"
)

// Exec runs a statement in the database of blocks.
func (x *Index) Exec(statement string, args ...any) error {
	_, err := x.blocks.db.ExecContext(context.Background(), statement, args...)
	return err
}

// Set changes the options of an open Index.
func (x *Index) Set(o Options) { x.opt = o.withDefaults() }

// Transact calls do in a transaction of the database of documents.
func (x *Index) Transact(ctx context.Context, do func(*sql.Tx) error) error {
	return x.use(&x.words, func(db *sql.DB) error { return transact(ctx, db, do) })
}

package index

import "context"

// Exec runs a statement beside what the package does.
func (x *Index) Exec(statement string, args ...any) error {
	_, err := x.blocks.db.ExecContext(context.Background(), statement, args...)
	return err
}

// Set changes the options of an open Index.
func (x *Index) Set(o Options) { x.opt = o.withDefaults() }

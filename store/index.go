package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/promptware-os/pwos/journal"
)

// Watermark returns the last entry that is indexed, the zero Head where none is.
func (s *Store) Watermark(ctx context.Context) (mark journal.Head, err error) {
	err = s.view(ctx, func(c *sql.Conn) error {
		return query(c, func(rows *sql.Rows) error {
			r := runRow{want: []string{"head"}}
			if err := r.scan(rows); err != nil {
				return err
			}
			mark = journal.Head{Seq: uint64(r.run) * RunEntries, Hash: r.head.hash}
			return nil
		}, "SELECT run, head FROM runs ORDER BY run DESC LIMIT 1")
	})
	if err != nil {
		return journal.Head{}, fmt.Errorf("read watermark: %w", err)
	}
	return mark, nil
}

// DropIndex drops the index; also where the file is damaged, which is then made anew, the snapshots with it. A Follower
// begins again with the first entry.
func (s *Store) DropIndex(ctx context.Context) error {
	if err := s.drop(ctx, func(c *sql.Conn) error { return exec(c, "DELETE FROM runs") }); err != nil {
		return fmt.Errorf("drop index: %w", err)
	}
	return nil
}

// lastRun returns 0 where there is none.
func lastRun(c *sql.Conn) (run int64, err error) {
	err = c.QueryRowContext(context.Background(), "SELECT ifnull(max(run), 0) FROM runs").Scan(&run)
	return run, err
}

// runRow is the columns of a run that are wanted, the head always first among them.
type runRow struct {
	want  []string
	run   int64
	head  runHead
	lists [3][]byte // those wanted behind the head, valid until the next row

	raw [4]sql.RawBytes
}

func (r *runRow) scan(rows *sql.Rows) error {
	dest := [5]any{&r.run, &r.raw[0], &r.raw[1], &r.raw[2], &r.raw[3]}
	if err := rows.Scan(dest[:1+len(r.want)]...); err != nil {
		return fmt.Errorf("%w: row of the index: %w", ErrDamaged, err)
	}
	if r.run < 1 || r.run > maxRun {
		return fmt.Errorf("%w: run %d of the index", ErrDamaged, r.run)
	}
	for i, column := range r.want {
		data, err := unseal(r.run, column, r.raw[i])
		if err != nil {
			return err
		}
		if i > 0 {
			r.lists[i-1] = data
		} else if err := r.head.decode(data); err != nil {
			return err
		}
	}
	return nil
}

// maxRun keeps the seq of an entry within 64 bits.
const maxRun = 1 << 50

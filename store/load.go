package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Load hands the chunks of a snapshot to restore, in order and as long as they were; a chunk is valid until restore
// returns. It returns ErrNoSnapshot where there is none, an error that wraps ErrDamaged where it is not what was saved,
// and the error of restore, which ends it. restore must not call the Store.
//
// No chunk of a damaged part is ever handed on, but those before it are: after any error the caller resets what it
// restored and replays the journal instead.
func (s *Store) Load(ctx context.Context, name string, restore func(chunk []byte) error) error {
	err := s.view(ctx, func(c *sql.Conn) error {
		row, err := findSnapshot(c, name)
		if err != nil {
			return err
		}
		return loadParts(ctx, c, row, restore)
	})
	if err != nil {
		return fmt.Errorf("load snapshot %s: %w", name, err)
	}
	return nil
}

func findSnapshot(c *sql.Conn, name string) (row *snapshotRow, err error) {
	err = query(c, func(rows *sql.Rows) error {
		if row != nil {
			return fmt.Errorf("%w: two snapshots of one name", ErrDamaged)
		}
		row = new(snapshotRow)
		return row.scan(rows)
	}, "SELECT "+snapshotColumns+" FROM snapshots WHERE name = ?", name)
	if err == nil && row == nil {
		err = ErrNoSnapshot
	}
	return row, err
}

func loadParts(ctx context.Context, c *sql.Conn, row *snapshotRow, restore func([]byte) error) error {
	sum := row.firstSum()
	var parts, chunks, bytes int64
	err := query(c, func(rows *sql.Rows) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var id int64
		var saved, data sql.RawBytes // no copies: the driver's own is enough
		if err := rows.Scan(&id, &saved, &data); err != nil {
			return fmt.Errorf("%w: part %d: %w", ErrDamaged, parts, err)
		}
		sum = nextSum(sum, data)
		if string(saved) != string(sum[:]) || id != partID(row.id, parts) {
			return fmt.Errorf("%w: part %d of %d is not what was saved", ErrDamaged, parts, row.parts)
		}
		parts++
		return unpack(data, func(chunk []byte) error {
			chunks++
			bytes += int64(len(chunk))
			return restore(chunk)
		})
	}, "SELECT id, sum, data FROM parts WHERE id BETWEEN ? AND ? ORDER BY id", partID(row.id, 0), partID(row.id, 1<<32-1))
	if err != nil {
		return err
	}
	if parts != row.parts || chunks != row.Chunks || bytes != row.Bytes || row.lastSum(sum) != row.sum {
		return fmt.Errorf("%w: %d parts, %d chunks, %d bytes found; %d, %d, %d expected",
			ErrDamaged, parts, chunks, bytes, row.parts, row.Chunks, row.Bytes)
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/promptware-os/pwos/journal"
)

// Save replaces the snapshot of that name by one of the state at the entry at. It calls write once, on this goroutine,
// with a function that takes the next chunk and has copied it when it returns; write stops at the first error of that
// function. A chunk may be empty, and there may be none.
//
// It is one transaction: after an error of any kind, or a crash, the snapshot before is still there. While it runs, other
// Saves and commits of the index wait, and readers see the old one. write must not call the Store.
func (s *Store) Save(ctx context.Context, name string, at journal.Head, tick int64, write func(put func(chunk []byte) error) error) error {
	row := snapshotRow{SnapshotInfo: SnapshotInfo{Name: name, At: at, Tick: tick}}
	err := s.update(ctx, func(c *sql.Conn) error {
		// The old one goes first, so that the new one can have its pages.
		if err := deleteSnapshot(c, name); err != nil {
			return err
		}
		return saveSnapshot(ctx, c, &row, write)
	})
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", name, err)
	}
	return nil
}

func saveSnapshot(ctx context.Context, c *sql.Conn, row *snapshotRow, write func(put func([]byte) error) error) error {
	bg := context.Background()
	if err := c.QueryRowContext(bg, "SELECT ifnull(max(id), 0) + 1 FROM snapshots").Scan(&row.id); err != nil {
		return err
	}
	insert, err := c.PrepareContext(bg, "INSERT INTO parts (id, sum, data) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()

	row.sum = row.firstSum()
	p := packer{emit: func(part []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		row.sum = nextSum(row.sum, part)
		_, err := insert.ExecContext(bg, partID(row.id, row.parts), row.sum[:], part)
		row.parts++
		return err
	}}
	if err := write(p.put); err != nil {
		return err
	}
	if err := p.finish(); err != nil {
		return err
	}
	row.Chunks, row.Bytes = p.chunks, p.bytes
	row.sum = row.lastSum(row.sum)
	_, err = c.ExecContext(bg, "INSERT INTO snapshots ("+snapshotColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		row.id, row.Name, int64(row.At.Seq), row.At.Hash[:], row.Tick, row.parts, row.Chunks, row.Bytes, row.sum[:])
	return err
}

package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"

	"github.com/promptware-os/pwos/journal"
)

// SnapshotInfo says what a snapshot is of.
type SnapshotInfo struct {
	Name   string
	At     journal.Head // the last entry that the state contains; the zero Head: none
	Tick   int64        // the kernel's tick then
	Chunks int64        // how many there are
	Bytes  int64        // how long they are together
}

// snapshotRow is a row of the table.
type snapshotRow struct {
	SnapshotInfo
	id    int64
	parts int64
	sum   digest
}

type digest = [sha256.Size]byte

const snapshotColumns = "id, name, seq, hash, tick, parts, chunks, bytes, sum"

func (r *snapshotRow) scan(rows *sql.Rows) error {
	var seq int64
	var hash, sum sql.RawBytes
	if err := rows.Scan(&r.id, &r.Name, &seq, &hash, &r.Tick, &r.parts, &r.Chunks, &r.Bytes, &sum); err != nil {
		// What was written can be scanned: a value of another type is not what was written.
		return fmt.Errorf("%w: row of a snapshot: %w", ErrDamaged, err)
	}
	r.At.Seq = uint64(seq)
	if copy(r.At.Hash[:], hash) != len(hash) || copy(r.sum[:], sum) != len(sum) || len(hash) != len(sum) || len(sum) != sha256.Size {
		return fmt.Errorf("%w: row of snapshot %q", ErrDamaged, r.Name)
	}
	return nil
}

// The sums of a snapshot are a chain: the first is over what it is of, each next one over the one before and a part, the
// last over how much there was. So no part can be altered, left out, exchanged or taken from another snapshot, and each
// can be checked before the next is read.

func (r *snapshotRow) firstSum() digest {
	b := fmt.Appendf(nil, "pwos snapshot\x00%d:%s", len(r.Name), r.Name)
	b = binary.BigEndian.AppendUint64(b, r.At.Seq)
	b = append(b, r.At.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Tick))
	return sha256.Sum256(b)
}

func nextSum(sum digest, part []byte) (next digest) {
	h := sha256.New()
	h.Write(sum[:])
	h.Write(part)
	h.Sum(next[:0])
	return next
}

func (r *snapshotRow) lastSum(sum digest) digest {
	b := append([]byte(nil), sum[:]...)
	for _, n := range []int64{r.parts, r.Chunks, r.Bytes} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return sha256.Sum256(b)
}

// partID is where part n of snapshot id is: a snapshot has fewer than 2^32 parts, of 256 KiB or more.
func partID(id, n int64) int64 { return id<<32 | n }

// Snapshots lists the snapshots by name.
func (s *Store) Snapshots(ctx context.Context) (infos []SnapshotInfo, err error) {
	err = s.view(ctx, func(c *sql.Conn) error {
		return query(c, func(rows *sql.Rows) error {
			var row snapshotRow
			err := row.scan(rows)
			infos = append(infos, row.SnapshotInfo)
			return err
		}, "SELECT "+snapshotColumns+" FROM snapshots ORDER BY name")
	})
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	return infos, nil
}

// DropSnapshots drops them all; also where the file is damaged, which is then made anew, the index with it.
func (s *Store) DropSnapshots(ctx context.Context) error {
	err := s.drop(ctx, func(c *sql.Conn) error { return exec(c, "DELETE FROM parts", "DELETE FROM snapshots") })
	if err != nil {
		return fmt.Errorf("drop snapshots: %w", err)
	}
	return nil
}

func (s *Store) dropSnapshot(ctx context.Context, name string) error {
	err := s.drop(ctx, func(c *sql.Conn) error { return deleteSnapshot(c, name) })
	if err != nil {
		return fmt.Errorf("drop snapshot %s: %w", name, err)
	}
	return nil
}

// deleteSnapshot deletes a snapshot, and whatever parts are left without one.
func deleteSnapshot(c *sql.Conn, name string) error {
	if _, err := c.ExecContext(context.Background(), "DELETE FROM snapshots WHERE name = ?", name); err != nil {
		return err
	}
	return exec(c, "DELETE FROM parts WHERE id >> 32 NOT IN (SELECT id FROM snapshots)")
}

func exec(c *sql.Conn, statements ...string) error {
	for _, text := range statements {
		if _, err := c.ExecContext(context.Background(), text); err != nil {
			return err
		}
	}
	return nil
}

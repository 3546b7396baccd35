package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/promptware-os/pwos/journal"
)

// Tags are what the index keeps of an entry.
type Tags struct {
	Head        journal.Head // the entry
	Time        int64        // Unix milliseconds
	PID         int64        // process that the call was made as
	Type        string       // type of the message; "" where it could not be read, which fits every filter
	Correlation string       // metadata.correlation; "" where there is none
}

// An Indexer takes entries into the index, a run of RunEntries at a time. It is for one goroutine, and there is to be one
// at a time for a Store.
type Indexer struct {
	s    *Store
	next uint64 // seq of the entry that follows
	n    int    // entries of this run so far

	head         runHead
	pids         []uint64
	types        []uint64
	correlations []uint64
}

// Indexer returns an Indexer that goes on behind the watermark.
func (s *Store) Indexer(ctx context.Context) (*Indexer, error) {
	mark, err := s.Watermark(ctx)
	if err != nil {
		return nil, err
	}
	return &Indexer{s: s, next: mark.Seq + 1}, nil
}

// Next is the seq of the entry that Add wants next.
func (x *Indexer) Next() uint64 { return x.next }

// Full reports whether the run is complete, and Commit due.
func (x *Indexer) Full() bool { return x.n == RunEntries }

// Add takes an entry into the run. It keeps nothing of e. It returns ErrOrder where e is not the entry Next, or where the
// run is full.
func (x *Indexer) Add(e *Tags) error {
	if e.Head.Seq != x.next || x.Full() {
		return fmt.Errorf("%w: entry %d, run of %d, next %d", ErrOrder, e.Head.Seq, x.n, x.next)
	}
	block := x.n / blockEntries
	if x.n%blockEntries == 0 {
		x.head.from[block], x.head.to[block] = e.Time, e.Time
	} else {
		x.head.from[block] = min(x.head.from[block], e.Time)
		x.head.to[block] = max(x.head.to[block], e.Time)
	}
	x.pids = appendPosting(x.pids, posting(hashNumber(e.PID), block))
	if e.Type == "" {
		x.head.wild |= 1 << block
	} else {
		x.types = appendPosting(x.types, posting(hashText(e.Type), block))
	}
	if e.Correlation != "" {
		x.correlations = appendPosting(x.correlations, posting(hashText(e.Correlation), block))
	}
	x.head.hash = e.Head.Hash
	x.next++
	x.n++
	return nil
}

// appendPosting leaves out what the entry before has said already; encodePostings takes care of the rest.
func appendPosting(list []uint64, p uint64) []uint64 {
	if n := len(list); n > 0 && list[n-1] == p {
		return list
	}
	return append(list, p)
}

// Commit writes the full run, in one transaction, and begins the next. After an error nothing was written and the run is
// kept, so that Commit can be tried again, but for ErrOrder: the index is not what it was, as it has been dropped, so the
// Indexer is of no more use.
func (x *Indexer) Commit(ctx context.Context) error {
	if !x.Full() {
		return fmt.Errorf("%w: commit of a run of %d", ErrOrder, x.n)
	}
	run := int64((x.next - 1) / RunEntries)
	err := x.s.update(ctx, func(c *sql.Conn) error {
		last, err := lastRun(c)
		if err != nil {
			return err
		}
		if last != run-1 {
			return fmt.Errorf("%w: run %d after run %d", ErrOrder, run, last)
		}
		_, err = c.ExecContext(context.Background(), "INSERT INTO runs (run, head, pids, types, correlations) VALUES (?, ?, ?, ?, ?)", run,
			seal(run, "head", x.head.encode()),
			seal(run, "pids", encodePostings(x.pids)),
			seal(run, "types", encodePostings(x.types)),
			seal(run, "correlations", encodePostings(x.correlations)))
		return err
	})
	if err != nil {
		return fmt.Errorf("commit index: %w", err)
	}
	x.n = 0
	x.head = runHead{}
	x.pids, x.types, x.correlations = x.pids[:0], x.types[:0], x.correlations[:0]
	return nil
}

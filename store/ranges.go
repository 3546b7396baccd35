package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A Filter says which entries a question is about: those that fit every member that is set. The zero Filter fits all.
type Filter struct {
	PID         *int64 // process that the call was made as
	Type        string // type of the message, such as "Memory.Set"; "" fits all
	Correlation string // metadata.correlation; "" fits all
	SinceTime   *int64 // not before, Unix milliseconds
	UntilTime   *int64 // not after, Unix milliseconds
}

// A Range is entries of the journal, both ends included.
type Range struct{ First, Last uint64 }

// OpenEnd is the Last of a Range that goes on to the end of the journal, wherever that is.
const OpenEnd = ^uint64(0)

var errLimit = errors.New("limit reached")

// Ranges returns where in the journal entries from seq from on can be that fit the filter: ascending, not overlapping, at
// most limit of them (limit below 1 means 1). No entry that fits is outside of them; most entries inside need not fit, so
// the caller reads and checks them.
//
// The last Range goes from the first entry that is not indexed to OpenEnd, unless limit came first. Where the last one
// does not end in OpenEnd, the next page is from its Last plus one. A Range but that of the open end is at most RunEntries
// long.
//
// Where the error wraps ErrDamaged, the caller reads the whole journal instead, and calls DropIndex; a Follower then makes
// the index anew.
func (s *Store) Ranges(ctx context.Context, f Filter, from uint64, limit int) ([]Range, error) {
	q := question{from: max(from, 1), limit: max(limit, 1)}
	q.setFilter(f)
	err := s.view(ctx, func(c *sql.Conn) error {
		return query(c, func(rows *sql.Rows) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return q.take(rows)
		}, "SELECT run, "+strings.Join(q.row.want, ", ")+" FROM runs WHERE run >= ? ORDER BY run", q.firstRun())
	})
	if errors.Is(err, errLimit) {
		return q.found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	return append(q.found, Range{First: max(q.from, uint64(q.row.run)*RunEntries+1), Last: OpenEnd}), nil
}

// A question is a call of Ranges on its way through the runs.
type question struct {
	Filter
	from  uint64
	limit int
	row   runRow
	lists []sought // in the order of row.lists
	found []Range
}

// sought is a value that is looked up in a posting list.
type sought struct {
	hash uint32
	wild bool // whether blocks with unreadable entries fit too
}

func (q *question) setFilter(f Filter) {
	q.Filter = f
	q.row.want = append(q.row.want, "head")
	if f.PID != nil {
		q.seek("pids", sought{hash: hashNumber(*f.PID)})
	}
	if f.Type != "" {
		q.seek("types", sought{hash: hashText(f.Type), wild: true})
	}
	if f.Correlation != "" {
		q.seek("correlations", sought{hash: hashText(f.Correlation), wild: true})
	}
}

func (q *question) seek(column string, v sought) {
	q.row.want = append(q.row.want, column)
	q.lists = append(q.lists, v)
}

func (q *question) firstRun() int64 { return int64(min((q.from-1)/RunEntries+1, maxRun)) }

// take adds the blocks of one run that fit.
func (q *question) take(rows *sql.Rows) error {
	want := q.firstRun()
	if q.row.run > 0 {
		want = q.row.run + 1
	}
	if err := q.row.scan(rows); err != nil {
		return err
	}
	if q.row.run != want {
		return fmt.Errorf("%w: run %d of the index is missing", ErrDamaged, want)
	}
	set := q.fitting()
	start := uint64(want-1)*RunEntries + 1
	for block := 0; block < runBlocks; block++ {
		first := start + uint64(block)*blockEntries
		last := first + blockEntries - 1
		if set&(1<<block) == 0 || last < q.from {
			continue
		}
		first = max(first, q.from)
		// Neighbours make one range, but not across runs: a range ends before limit has lost its meaning.
		if n := len(q.found); n > 0 && first > start && q.found[n-1].Last == first-1 {
			q.found[n-1].Last = last
			continue
		}
		if len(q.found) == q.limit {
			return errLimit
		}
		q.found = append(q.found, Range{First: first, Last: last})
	}
	if len(q.found) == q.limit {
		return errLimit
	}
	return nil
}

// fitting returns the blocks of the row that can hold an entry that fits.
func (q *question) fitting() blockSet {
	h := &q.row.head
	set := allBlocks
	for block := range runBlocks {
		if q.SinceTime != nil && h.to[block] < *q.SinceTime || q.UntilTime != nil && h.from[block] > *q.UntilTime {
			set &^= 1 << block
		}
	}
	for i, v := range q.lists {
		fits := findPosting(q.row.lists[i], v.hash)
		if v.wild {
			fits |= h.wild
		}
		set &= fits
	}
	return set
}

package index

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
)

// SpanBlocks is the number of blocks in a span, which has one row with the processes whose tokens its entries change.
// Span n, counted from 1, has the blocks (n-1)*SpanBlocks+1 to n*SpanBlocks. Changes of tokens are rare and far apart.
const SpanBlocks = 16

const spansTable = `CREATE TABLE spans (span INTEGER PRIMARY KEY, holders BLOB NOT NULL, sum INTEGER NOT NULL);`

// spanOf returns the span of a block.
func spanOf(block int64) int64 { return (block + SpanBlocks - 1) / SpanBlocks }

// sumOfSpan returns a checksum of the row, which detects alteration.
func sumOfSpan(span int64, holders termList) int64 {
	return int64(crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, uint64(span)), castagnoli), castagnoli, holders))
}

// addSpan adds the row of a span. All blocks of the span must be in the index.
func addSpan(ctx context.Context, tx *sql.Tx, span int64) error {
	var holders []term
	err := scanRows(ctx, tx, func(r *row) bool {
		for i := range len(r.holders) / 4 {
			holders = append(holders, r.holders.at(i))
		}
		return true
	}, "SELECT "+columns+" FROM blocks WHERE block > ? AND block <= ? ORDER BY block", (span-1)*SpanBlocks, span*SpanBlocks)
	if err != nil {
		return err
	}
	list := listOf(holders)
	_, err = tx.ExecContext(ctx, "INSERT INTO spans (span, holders, sum) VALUES (?, ?, ?)", span, []byte(list), sumOfSpan(span, list))
	return err
}

// eachSpan calls each with the rows of a query until it returns false. Their spans must be first, first+step, and so
// on. The terms are valid until the next row.
func eachSpan(ctx context.Context, tx *sql.Tx, first, step int64, each func(span int64, holders termList) bool, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for want := first; rows.Next(); want += step {
		var span, sum int64
		var holders sql.RawBytes
		if err := rows.Scan(&span, &holders, &sum); err != nil {
			return fmt.Errorf("%w: row of the index: %w", ErrDamaged, err)
		}
		if span != want || sum != sumOfSpan(span, termList(holders)) {
			return fmt.Errorf("%w: span %d of the index", ErrDamaged, want)
		}
		if !each(span, termList(holders)) {
			return nil
		}
	}
	return rows.Err()
}

// mayChange reports whether the token of a process may change in a span.
func mayChange(holders termList, holder int64) bool {
	return holders.has(termOfHolder(holder)) || holders.has(unreadable)
}

// spanBefore returns the latest span from first to span in which the token of a process may change; 0 if there is none.
// All of these spans must be in the index.
func spanBefore(ctx context.Context, tx *sql.Tx, holder, span, first int64) (found int64, err error) {
	next := span
	err = eachSpan(ctx, tx, span, -1, func(span int64, holders termList) bool {
		next = span - 1
		if mayChange(holders, holder) {
			found = span
		}
		return found == 0
	}, "SELECT span, holders, sum FROM spans WHERE span <= ? ORDER BY span DESC", span)
	if err == nil && found == 0 && next >= first {
		err = fmt.Errorf("%w: span %d of the index is missing", ErrDamaged, next)
	}
	return found, err
}

// skipSpans returns the last block of the spans directly after block in which the token of a process does not change;
// block itself if there is no such span.
func skipSpans(ctx context.Context, tx *sql.Tx, holder, block int64) (int64, error) {
	first := spanOf(block + 1)
	err := eachSpan(ctx, tx, first, 1, func(span int64, holders termList) bool {
		if mayChange(holders, holder) {
			return false
		}
		block = max(block, span*SpanBlocks)
		return true
	}, "SELECT span, holders, sum FROM spans WHERE span >= ? ORDER BY span", first)
	return block, err
}

// termList is a set of terms, 4 bytes each, ascending.
type termList []byte

// listOf returns the set of terms. An empty set is not nil, which the database would store as NULL.
func listOf(terms []term) termList {
	list := termList{}
	slices.Sort(terms)
	for _, t := range slices.Compact(terms) {
		list = binary.BigEndian.AppendUint32(list, t)
	}
	return list
}

func (l termList) has(t term) bool {
	n := len(l) / 4
	i := sort.Search(n, func(i int) bool { return l.at(i) >= t })
	return i < n && l.at(i) == t
}

func (l termList) at(i int) term { return binary.BigEndian.Uint32(l[4*i:]) }

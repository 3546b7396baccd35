package index

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/promptware-os/pwos/journal"
)

// BlockEntries is the number of entries in a block. Block n, counted from 1, has the entries (n-1)*BlockEntries+1 to
// n*BlockEntries. If the index begins after an archive, its first block lacks the archived entries.
const BlockEntries = 256

// Tags are the properties of an entry that the index keeps.
type Tags struct {
	Head        journal.Head // the entry
	Time        int64        // Unix milliseconds
	PID         int64        // process that the call was made as
	Type        string       // type of the message; "" if that is unreadable, and then every filter on messages matches
	Correlation string       // metadata.correlation, or ""
	ID          string       // metadata.id, or ""
	Causation   string       // metadata.causation, or ""
	Origin      string       // of the entry; Key belongs to it
	Key         string       // memory key that a command changes, or ""
	Denied      bool         // whether the call was refused
	Holders     []int64      // processes whose token the entry changes
}

// A term is a hash of a property that queries select entries by. A collision makes a query read an unnecessary block;
// it never leaves one out.
type term = uint32

func termOf(kind byte, value string) term {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, []byte(value))
}

// mention is a property of a message that queries select entries by.
type mention struct {
	kind  byte
	value string
}

func (m mention) term() term { return termOf(m.kind, m.value) }

func termOfPID(pid int64) term {
	return termOf('p', string(binary.BigEndian.AppendUint64(nil, uint64(pid))))
}

func termOfHolder(pid int64) term {
	return termOf('h', string(binary.BigEndian.AppendUint64(nil, uint64(pid))))
}

func termOfKey(origin, key string) term { return termOf('k', origin+"\x00"+key) }

// denied is the term for refusals.
var denied = termOf('d', "")

// unreadable is the term for entries whose message could not be read.
var unreadable = termOf('?', "")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// row is a block in the database.
type row struct {
	block            int64
	hash             journal.Hash // of the last entry, for comparison with the journal
	earliest, latest int64        // times of its entries; the clock may step back
	terms            termList     // of its entries
	holders          termList     // the terms for changed tokens among them
}

// blocksVersion is the version of the format of terms and holders, which blocksTables does not describe.
const blocksVersion = 7

const blocksTables = `CREATE TABLE blocks (block INTEGER PRIMARY KEY, hash BLOB NOT NULL, earliest INTEGER NOT NULL, ` +
	`latest INTEGER NOT NULL, terms BLOB NOT NULL, holders BLOB NOT NULL, sum INTEGER NOT NULL);` +
	spansTable +
	`CREATE TABLE base (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL)`

const columns = "block, hash, earliest, latest, terms, holders, sum"

// sum returns a checksum of the row, which detects alteration.
func (r *row) sum() int64 {
	b := r.hash[:]
	for _, n := range [...]int64{r.block, r.earliest, r.latest} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.terms)))
	return int64(crc32.Update(crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, r.terms), castagnoli, r.holders))
}

// scan reads a row. Its terms are valid until the next row.
func (r *row) scan(rows *sql.Rows) error {
	var hash, terms, holders sql.RawBytes
	var sum int64
	if err := rows.Scan(&r.block, &hash, &r.earliest, &r.latest, &terms, &holders, &sum); err != nil {
		return fmt.Errorf("%w: row of the index: %w", ErrDamaged, err)
	}
	r.terms, r.holders = termList(terms), termList(holders)
	if copy(r.hash[:], hash) != len(r.hash) || sum != r.sum() || r.block < 1 {
		return fmt.Errorf("%w: block %d of the index", ErrDamaged, r.block)
	}
	return nil
}

// last returns the seq of the last entry of a block.
func last(block int64) uint64 { return uint64(block) * BlockEntries }

// blockOf returns the block of an entry.
func blockOf(seq uint64) int64 { return int64((seq + BlockEntries - 1) / BlockEntries) }

// Watermark returns the last indexed entry. In an empty index that is the entry after which the index begins.
func (x *Index) Watermark(ctx context.Context) (mark journal.Head, err error) {
	err = x.readBlocks(ctx, func(tx *sql.Tx, base journal.Head) error {
		mark = base
		return scanRows(ctx, tx, func(r *row) bool {
			mark = journal.Head{Seq: last(r.block), Hash: r.hash}
			return true
		}, "SELECT "+columns+" FROM blocks ORDER BY block DESC LIMIT 1")
	})
	if err != nil {
		return journal.Head{}, fmt.Errorf("read watermark: %w", err)
	}
	return mark, nil
}

// readBlocks calls do in a transaction, with the entry after which the blocks begin: the zero Head if they begin with
// the first entry.
func (x *Index) readBlocks(ctx context.Context, do func(tx *sql.Tx, base journal.Head) error) error {
	return x.use(&x.blocks, func(db *sql.DB) error {
		return transact(ctx, db, func(tx *sql.Tx) error {
			base, err := readHead(ctx, tx, "SELECT seq, hash FROM base")
			if err != nil {
				return err
			}
			return do(tx, base)
		})
	})
}

// begin drops all rows, and lets the index begin after base, the last archived entry.
func (x *Index) begin(ctx context.Context, base journal.Head) error {
	err := x.use(&x.blocks, func(db *sql.DB) error {
		return transact(ctx, db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "DELETE FROM blocks; DELETE FROM spans"); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO base (one, seq, hash) VALUES (1, ?, ?)", int64(base.Seq), base.Hash[:])
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("begin index after the archive: %w", err)
	}
	return nil
}

// scanRows calls each with the rows of a query until it returns false.
func scanRows(ctx context.Context, db *sql.Tx, each func(*row) bool, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r row
	for rows.Next() {
		if err := r.scan(rows); err != nil {
			return err
		}
		if !each(&r) {
			return nil
		}
	}
	return rows.Err()
}

// Add indexes the block of entries after the watermark. It returns ErrOrder if tags are not a complete block in order,
// or not the next block, as after a concurrent Drop.
func (x *Index) Add(ctx context.Context, tags []Tags) error {
	if len(tags) == 0 || len(tags) > BlockEntries || tags[len(tags)-1].Head.Seq%BlockEntries != 0 {
		return fmt.Errorf("%w: block of %d entries", ErrOrder, len(tags))
	}
	first := tags[0].Head.Seq
	r := row{block: blockOf(first), earliest: tags[0].Time, latest: tags[0].Time}
	terms, holders := make([]term, 0, 6*BlockEntries), []term(nil)
	for i := range tags {
		t := &tags[i]
		if t.Head.Seq != first+uint64(i) {
			return fmt.Errorf("%w: entry %d is number %d of block %d", ErrOrder, t.Head.Seq, i+1, r.block)
		}
		r.hash, r.earliest, r.latest = t.Head.Hash, min(r.earliest, t.Time), max(r.latest, t.Time)
		terms = t.appendTerms(terms)
		holders = t.appendHolders(holders)
	}
	r.terms, r.holders = listOf(append(terms, holders...)), listOf(holders)
	err := x.use(&x.blocks, func(db *sql.DB) error {
		return transact(ctx, db, func(tx *sql.Tx) error {
			done, err := tx.ExecContext(ctx, "INSERT INTO blocks ("+columns+") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 "+
				"WHERE ?8 = 1 + coalesce((SELECT ?9 * max(block) FROM blocks), (SELECT seq FROM base), 0)",
				r.block, r.hash[:], r.earliest, r.latest, []byte(r.terms), []byte(r.holders), r.sum(), int64(first), BlockEntries)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				return errors.Join(fmt.Errorf("%w: block %d does not follow", ErrOrder, r.block), err)
			}
			if r.block%SpanBlocks != 0 {
				return nil
			}
			return addSpan(ctx, tx, spanOf(r.block))
		})
	})
	if err != nil {
		return fmt.Errorf("add to index: %w", err)
	}
	return nil
}

// appendTerms appends the terms of an entry.
func (t *Tags) appendTerms(terms []term) []term {
	terms = append(terms, termOfPID(t.PID))
	if t.Denied {
		terms = append(terms, denied)
	}
	if t.Type == "" {
		return append(terms, unreadable)
	}
	terms = append(terms, termOf('t', t.Type))
	for _, one := range [...]mention{{'c', t.Correlation}, {'i', t.ID}, {'b', t.Causation}} {
		if one.value != "" {
			terms = append(terms, one.term())
		}
	}
	if t.Key != "" {
		terms = append(terms, termOfKey(t.Origin, t.Key))
	}
	return terms
}

// appendHolders appends the terms of the tokens that an entry changes.
func (t *Tags) appendHolders(terms []term) []term {
	if t.Type == "" {
		return append(terms, unreadable)
	}
	for _, pid := range t.Holders {
		terms = append(terms, termOfHolder(pid))
	}
	return terms
}

// A Filter selects the entries that match all of its set members. The zero Filter matches all entries.
type Filter struct {
	PID         *int64 // process that the call was made as
	Type        string // type of the message, such as "Memory.Set"; "" matches all
	Correlation string // metadata.correlation; "" matches all
	ID          string // metadata.id; "" matches all
	CausedBy    string // metadata.causation; "" matches all
	Key         string // memory key, in Origin; "" matches all
	Origin      string // of Key
	Denied      bool   // only refusals
	Holder      *int64 // process whose token the entry changes
	SinceTime   *int64 // not before, Unix milliseconds
	UntilTime   *int64 // not after, Unix milliseconds
}

// terms returns the terms of each block that has a matching entry. A block with an unreadable entry may lack those in
// messages.
func (f *Filter) terms() (entries, messages []term) {
	if f.PID != nil {
		entries = append(entries, termOfPID(*f.PID))
	}
	if f.Denied {
		entries = append(entries, denied)
	}
	for _, one := range [...]mention{{'t', f.Type}, {'c', f.Correlation}, {'i', f.ID}, {'b', f.CausedBy}} {
		if one.value != "" {
			messages = append(messages, one.term())
		}
	}
	if f.Key != "" {
		messages = append(messages, termOfKey(f.Origin, f.Key))
	}
	if f.Holder != nil {
		messages = append(messages, termOfHolder(*f.Holder))
	}
	return entries, messages
}

// fits reports whether a block can hold a matching entry.
func (f *Filter) fits(r *row, entries, messages []term) bool {
	if f.SinceTime != nil && r.latest < *f.SinceTime || f.UntilTime != nil && r.earliest > *f.UntilTime {
		return false
	}
	lacks := func(t term) bool { return !r.terms.has(t) }
	return !slices.ContainsFunc(entries, lacks) && (!slices.ContainsFunc(messages, lacks) || r.terms.has(unreadable))
}

// A Range is a range of journal entries, both ends included.
type Range struct{ First, Last uint64 }

// OpenEnd is the Last of a Range that extends to the end of the journal.
const OpenEnd = ^uint64(0)

// rangeEntries bounds every Range except the open one, so that a query does not read the whole index first.
const rangeEntries = 16 * BlockEntries

// Ranges returns the parts of the journal, starting at the entry from, that can have matching entries: ascending, not
// overlapping, at most limit of them (limit below 1 means 1). They contain every matching entry, and others too: the
// caller reads and checks them.
//
// The last Range begins at the first entry that is not indexed and ends at OpenEnd, unless limit was reached. If it
// does not end at OpenEnd, the next page begins at its Last plus one.
//
// If the error wraps ErrDamaged, the caller reads the whole journal instead, and calls Drop; Follow then rebuilds the
// index.
func (x *Index) Ranges(ctx context.Context, f Filter, from uint64, limit int) (found []Range, err error) {
	from, limit = max(from, 1), max(limit, 1)
	var block int64 // the last block that was read
	var begins uint64
	full, missing := false, false
	entries, messages := f.terms()
	err = x.readBlocks(ctx, func(tx *sql.Tx, base journal.Head) error {
		if from <= base.Seq {
			found = append(found, Range{First: from, Last: base.Seq})
			from = base.Seq + 1
		}
		block, begins = int64((from-1)/BlockEntries), base.Seq+1
		if f.Holder != nil {
			if block, err = skipSpans(ctx, tx, *f.Holder, block); err != nil {
				return err
			}
		}
		return scanRows(ctx, tx, func(r *row) bool {
			missing = r.block != block+1
			first, n := max(last(block)+1, begins), len(found)
			joins := n > 0 && found[n-1].Last == first-1 && first%rangeEntries != 1
			full = n == limit && !joins
			if missing || full {
				return false
			}
			block = r.block
			switch {
			case !f.fits(r, entries, messages):
			case joins:
				found[n-1].Last = last(block)
			default:
				found = append(found, Range{First: max(from, first), Last: last(block)})
			}
			return true
		}, "SELECT "+columns+" FROM blocks WHERE block > ? ORDER BY block", block)
	})
	if missing {
		err = fmt.Errorf("%w: block %d of the index is missing", ErrDamaged, block+1)
	}
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	if full || len(found) == limit {
		return found, nil
	}
	return append(found, Range{First: max(from, begins, last(block)+1), Last: OpenEnd}), nil
}

// Before returns the parts of the journal up to seq that can have matching entries, the latest first: the part that is
// not indexed, then single blocks, at most limit of them (limit below 1 means 1). They contain every matching entry,
// unless limit was reached: then the next page ends before the last part.
func (x *Index) Before(ctx context.Context, f Filter, seq uint64, limit int) (found []Range, err error) {
	limit = max(limit, 1)
	block := blockOf(seq) // the block with seq
	entries, messages := f.terms()
	below, missing := int64(0), false // below: the last block read
	var base journal.Head
	err = x.readBlocks(ctx, func(tx *sql.Tx, begins journal.Head) error {
		if base = begins; seq <= base.Seq {
			return nil
		}
		for from, resumed := block, int64(0); ; {
			whole := int64(0) // last block of a span, from which spans without a change are skipped; 0: none
			err := scanRows(ctx, tx, func(r *row) bool {
				if below == 0 && r.block < block {
					found = append(found, Range{First: last(r.block) + 1, Last: seq})
				}
				missing = below != 0 && r.block != below-1
				if missing || len(found) >= limit {
					return false
				}
				if f.Holder != nil && r.block%SpanBlocks == 0 && r.block != resumed {
					whole = r.block
					return false
				}
				below = r.block
				if f.fits(r, entries, messages) {
					found = append(found, Range{First: max(base.Seq, last(r.block-1)) + 1, Last: min(seq, last(r.block))})
				}
				return true
			}, "SELECT "+columns+" FROM blocks WHERE block <= ? ORDER BY block DESC", from)
			if err != nil || whole == 0 {
				return err
			}
			first := blockOf(base.Seq + 1)
			span, err := spanBefore(ctx, tx, *f.Holder, spanOf(whole), spanOf(first))
			if err != nil {
				return err
			}
			if span == 0 {
				below = first
				return nil
			}
			resumed = span * SpanBlocks
			from, below = resumed, resumed+1
		}
	})
	switch {
	case missing || err == nil && below > blockOf(base.Seq+1) && len(found) < limit:
		err = fmt.Errorf("%w: block %d of the index is missing", ErrDamaged, below-1)
	case err == nil && below == 0 && len(found) == 0 && seq > 0: // nothing is indexed
		found = append(found, Range{First: 1, Last: seq})
	case err == nil && base.Seq > 0 && len(found) < limit:
		found = append(found, Range{First: 1, Last: min(seq, base.Seq)})
	}
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	return found, nil
}

// InJournal reports whether the journal in dir has an entry. The zero Head is in every journal. A nil fsys means
// journal.OSFS; synced is (*journal.Log).Synced, or nil to read all that the files hold.
func InJournal(fsys journal.FS, dir string, synced func() uint64, at journal.Head) (held bool, err error) {
	if at.Seq == 0 {
		return at == journal.Head{}, nil
	}
	r := journal.NewReader(fsys, dir, journal.ReaderOptions{From: at.Seq, Limit: synced})
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Next(context.Background())
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if gone, archived := errors.AsType[*journal.ArchivedError](err); archived {
		return gone.Anchor.Head == at, nil // entries before the anchor cannot be checked
	}
	if err != nil {
		return false, fmt.Errorf("look up entry %d: %w", at.Seq, err)
	}
	return record.Seq == at.Seq && record.Hash == at.Hash, nil
}

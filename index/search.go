package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// wordsVersion is the version of the format of documents, which wordsTables does not describe.
const wordsVersion = 1

// schema.Words splits a text into words. SQLite gets the words with spaces between them.
const wordsTables = `CREATE VIRTUAL TABLE calls USING fts5(who, said, data, time UNINDEXED, intent UNINDEXED, tokenize='ascii')` +
	`;CREATE TABLE mark (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL)`

// Searchable returns the last entry that the index of documents has read, the zero Head if there is none. Search reads
// later entries from the journal.
func (x *Index) Searchable(ctx context.Context) (mark journal.Head, err error) {
	err = x.use(&x.words, func(db *sql.DB) (err error) {
		mark, err = searchable(ctx, db)
		return err
	})
	if err != nil {
		return journal.Head{}, fmt.Errorf("read watermark of search: %w", err)
	}
	return mark, nil
}

func searchable(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (mark journal.Head, err error) {
	return readHead(ctx, db, "SELECT seq, hash FROM mark")
}

// readHead reads an entry's number and hash, the zero Head if there is no row.
func readHead(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string,
) (at journal.Head, err error) {
	var hash []byte
	var seq int64
	switch err := db.QueryRowContext(ctx, query).Scan(&seq, &hash); {
	case errors.Is(err, sql.ErrNoRows):
		return at, nil
	case err != nil:
		return at, err
	}
	if at.Seq = uint64(seq); copy(at.Hash[:], hash) != len(at.Hash) {
		return at, fmt.Errorf("%w: watermark of the index", ErrDamaged)
	}
	return at, nil
}

// addDocuments adds the documents of the entries after from, up to to.
func (x *Index) addDocuments(ctx context.Context, from, to journal.Head, docs []Document) error {
	err := x.use(&x.words, func(db *sql.DB) error {
		return transact(ctx, db, func(tx *sql.Tx) error {
			if mark, err := searchable(ctx, tx); err != nil || mark != from {
				return errors.Join(err, fmt.Errorf("%w: the last entry is %d, not %d", ErrOrder, mark.Seq, from.Seq))
			}
			if err := addCalls(ctx, tx, docs); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO mark (one, seq, hash) VALUES (1, ?, ?)", int64(to.Seq), to.Hash[:])
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("add to search: %w", err)
	}
	return nil
}

// addCalls adds documents. That of an end replaces that of its intent.
func addCalls(ctx context.Context, tx *sql.Tx, docs []Document) (err error) {
	insert, err := tx.PrepareContext(ctx, "INSERT INTO calls (rowid, who, said, data, time, intent) VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for i := range docs {
		d := &docs[i]
		if d.Intent != 0 {
			if _, err := tx.ExecContext(ctx, "DELETE FROM calls WHERE rowid = ?", int64(d.Intent)); err != nil {
				return err
			}
		}
		if _, err := insert.ExecContext(ctx, int64(d.Seq), who(d.PID), string(d.Said), string(d.Data), d.Time, int64(d.Intent)); err != nil {
			return err
		}
	}
	return nil
}

// who returns the word for a process in column who.
func who(pid int64) string { return "p" + strconv.FormatInt(pid, 10) }

// Question is the query of a Search.
type Question struct {
	Phrases []schema.Phrase // a document must have all of them
	PIDs    []int64         // ascending; nil: calls of every process
	Since   *int64          // earliest time, Unix milliseconds
	Head    uint64          // the last entry to search
	Most    int             // maximum number of documents to return
}

// fits reports whether a document matches the question.
func (q *Question) fits(d *Document) bool {
	if q.Since != nil && d.Time < *q.Since {
		return false
	}
	if q.PIDs != nil {
		if _, of := slices.BinarySearch(q.PIDs, d.PID); !of {
			return false
		}
	}
	return Fits(d, q.Phrases)
}

// match returns the question as an FTS5 query. It needs no quoting, since phrases have only letters and digits.
func (q *Question) match(pids []int64) string {
	var b strings.Builder
	if pids != nil {
		b.WriteString("who : (")
		for i, pid := range pids {
			if i > 0 {
				b.WriteString(" OR ")
			}
			fmt.Fprintf(&b, "%q", who(pid))
		}
		b.WriteString(") AND ")
	}
	b.WriteString("{said data} : (")
	for i := range q.Phrases {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(quoted(&q.Phrases[i]))
	}
	return b.String() + ")"
}

func quoted(p *schema.Phrase) string {
	text := `"` + p.Words + `"`
	if p.Prefix {
		text += " *"
	}
	return text
}

// pidsAtOnce is the number of processes in one statement.
const pidsAtOnce = 500

// Search returns the newest documents that match a question, newest first. It reads entries that are not indexed from
// the journal. If the index is damaged, Search drops it, so that Follow rebuilds it, and reads the journal instead.
func (x *Index) Search(ctx context.Context, q Question) ([]Document, error) {
	for {
		found, err := x.searchDocuments(ctx, q)
		if !errors.Is(err, ErrDamaged) {
			return found, err
		}
		x.opt.Trouble(fmt.Errorf("index of documents is rebuilt: %w", err))
		if err := x.dropDatabase(&x.words); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
}

func (x *Index) searchDocuments(ctx context.Context, q Question) ([]Document, error) {
	mark, err := x.Searchable(ctx)
	if err != nil {
		return nil, err
	}
	found, ended, err := scanJournal(ctx, x.opt, mark.Seq+1, q)
	if err != nil {
		return nil, err
	}
	first, err := x.firstSince(ctx, q.Since)
	if err != nil {
		return nil, err
	}
	last := min(mark.Seq, q.Head)
	if slices.ContainsFunc(q.Phrases, func(p schema.Phrase) bool { return p.Prefix }) {
		newest, err := x.newest(ctx, q, first, last, ended)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		if found = append(found, newest...); len(found) >= q.Most {
			return found[:q.Most], nil
		}
		found = found[:len(found)-len(newest)]
	}
	chunks := [][]int64{nil}
	if q.PIDs != nil {
		chunks = slices.Collect(slices.Chunk(q.PIDs, pidsAtOnce))
	}
	var indexed []Document
	for _, pids := range chunks {
		if len(found) == q.Most {
			break
		}
		more, err := x.look(ctx, q, pids, first, last, ended)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		indexed = append(indexed, more...)
	}
	if len(chunks) > 1 {
		slices.SortFunc(indexed, func(a, b Document) int { return int(int64(b.Seq) - int64(a.Seq)) })
	}
	found = append(found, indexed...)
	return found[:min(len(found), q.Most)], nil
}

// firstSince returns an entry before which every entry is older than since.
func (x *Index) firstSince(ctx context.Context, since *int64) (uint64, error) {
	if since == nil {
		return 1, nil
	}
	ranges, err := x.Ranges(ctx, Filter{SinceTime: since}, 1, 1)
	if err != nil || len(ranges) == 0 {
		return 1, err
	}
	return ranges[0].First, nil
}

// newestRead is the number of documents that are read one by one for a prefix. SQLite merges the lists of all words
// with the prefix before it returns a row, which takes long if most documents have such a word.
const newestRead = 4000

const documentColumns = "rowid, who, said, data, time, intent"

// newest reads the newest indexed documents, and returns those that match a question, newest first.
func (x *Index) newest(ctx context.Context, q Question, first, last uint64, ended map[uint64]bool) ([]Document, error) {
	return x.fitting(ctx, q, ended, newestDocuments, int64(first), int64(last), newestRead)
}

const newestDocuments = "SELECT " + documentColumns + " FROM calls WHERE rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"

// look queries SQLite for the documents of the entries first to last, without intents in ended.
func (x *Index) look(ctx context.Context, q Question, pids []int64, first, last uint64, ended map[uint64]bool) ([]Document, error) {
	return x.fitting(ctx, q, ended, "SELECT "+documentColumns+" FROM calls WHERE calls MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC",
		q.match(pids), int64(first), int64(last))
}

// fitting returns the rows of a query that match a question, without intents in ended.
func (x *Index) fitting(ctx context.Context, q Question, ended map[uint64]bool, query string, args ...any) (found []Document, err error) {
	err = x.read(ctx, func(d *Document) bool {
		if !ended[d.Seq] && q.fits(d) {
			found = append(found, *d)
		}
		return len(found) < q.Most
	}, query, args...)
	return found, err
}

// read calls each with the rows of a query until it returns false.
func (x *Index) read(ctx context.Context, each func(*Document) bool, query string, args ...any) error {
	return x.use(&x.words, func(db *sql.DB) (err error) {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			d, err := scanDocument(rows)
			if err != nil {
				return err
			}
			if !each(&d) {
				return nil
			}
		}
		return rows.Err()
	})
}

func scanDocument(rows *sql.Rows) (d Document, err error) {
	var seq, intent int64
	var by, said, data string
	if err := rows.Scan(&seq, &by, &said, &data, &d.Time, &intent); err != nil {
		return d, fmt.Errorf("%w: document: %w", ErrDamaged, err)
	}
	if d.PID, err = strconv.ParseInt(strings.TrimPrefix(by, "p"), 10, 64); err != nil {
		return d, fmt.Errorf("%w: document %d", ErrDamaged, seq)
	}
	d.Seq, d.Intent, d.Said, d.Data = uint64(seq), uint64(intent), schema.Words(said), schema.Words(data)
	return d, nil
}

// Frequency returns the number of documents that have a phrase, at most most. For a prefix it counts the newest
// documents and extrapolates, so that the cost does not depend on the prefix.
func (x *Index) Frequency(ctx context.Context, p *schema.Phrase, most int) (n int64, err error) {
	if p.Prefix {
		n, err = x.prefixFrequency(ctx, p)
		n = min(n, int64(most))
	} else {
		err = x.use(&x.words, func(db *sql.DB) error {
			return db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM calls WHERE calls MATCH ? LIMIT ?)", "{said data} : "+quoted(p), most).Scan(&n)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("count documents: %w", err)
	}
	return n, nil
}

func (x *Index) prefixFrequency(ctx context.Context, p *schema.Phrase) (int64, error) {
	mark, err := x.Searchable(ctx)
	if err != nil {
		return 0, err
	}
	q := Question{Phrases: []schema.Phrase{*p}}
	read, having := int64(0), int64(0)
	err = x.read(ctx, func(d *Document) bool {
		if read++; q.fits(d) {
			having++
		}
		return true
	}, newestDocuments, 1, int64(mark.Seq), newestRead)
	if read == newestRead {
		having = having * int64(mark.Seq) / newestRead
	}
	return having, err
}

// Scan answers a question without an index: it reads a journal from the entry first on.
func Scan(ctx context.Context, o Options, first uint64, q Question) ([]Document, error) {
	found, ended, err := scanJournal(ctx, o.withDefaults(), first, q)
	return slices.DeleteFunc(found, func(d Document) bool { return ended[d.Seq] }), err
}

// scanJournal returns the newest documents that match a question, newest first, and the intents that have ended.
func scanJournal(ctx context.Context, o Options, first uint64, q Question) (found []Document, ended map[uint64]bool, err error) {
	last := func() uint64 { return min(q.Head, o.Synced()) }
	if first > last() {
		return nil, nil, nil
	}
	r := journal.NewReader(o.FS, o.Dir, journal.ReaderOptions{From: first, Limit: last})
	defer func() { err = errors.Join(err, r.Close()) }()
	ended = make(map[uint64]bool)
	var past *journal.Anchor // of the archive that r reads; nil: r reads the journal
	next := first
	for docs := (documents{o}); ; {
		record, err := r.Next(ctx)
		gone, archived := errors.AsType[*journal.ArchivedError](err)
		switch {
		case archived && past == nil && gone.Anchor.Seq >= next:
			past = gone.Anchor
			if err := r.Close(); err != nil {
				return nil, nil, err
			}
			r = journal.NewReader(o.FS, past.Archive, journal.ReaderOptions{From: next, Limit: func() uint64 { return min(past.Seq, q.Head) }})
			continue
		case err != nil && past != nil && ctx.Err() == nil: // the archive has ended, or is not available
			next, past = past.Seq+1, nil
			if err := r.Close(); err != nil {
				return nil, nil, err
			}
			r = journal.NewReader(o.FS, o.Dir, journal.ReaderOptions{From: next, Limit: last})
			continue
		case errors.Is(err, io.EOF):
			return answers(found, ended, q.Most), ended, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read journal: %w", err)
		}
		next = record.Seq + 1
		d, ok, err := docs.of(ctx, record)
		if err != nil {
			return nil, nil, err
		}
		if d.Intent != 0 {
			ended[d.Intent] = true
		}
		if ok && q.fits(&d) {
			if found = append(found, d); len(found) >= 2*q.Most {
				found = slices.Delete(found, 0, len(found)-q.Most)
			}
		}
	}
}

// answers returns the newest of found, newest first, without intents in ended.
func answers(found []Document, ended map[uint64]bool, most int) []Document {
	found = slices.DeleteFunc(found, func(d Document) bool { return ended[d.Seq] })
	slices.Reverse(found)
	return found[:min(len(found), most)]
}

// Forget rebuilds the document of an entry whose line was rewritten in the journal, and that of its end, and erases the
// old text from the files of the index.
func (x *Index) Forget(ctx context.Context, seq uint64) error {
	err := x.use(&x.words, func(db *sql.DB) error {
		return x.forgetDocuments(ctx, db, seq)
	})
	if err != nil {
		return fmt.Errorf("forget entry %d: %w", seq, err)
	}
	return nil
}

func (x *Index) forgetDocuments(ctx context.Context, db *sql.DB, seq uint64) error {
	if err := transact(ctx, db, func(tx *sql.Tx) error { return x.replace(ctx, tx, seq) }); err != nil {
		return err
	}
	// Free pages still have deleted text.
	for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// replace deletes the documents of an entry and of its end, and adds them again from the journal.
func (x *Index) replace(ctx context.Context, tx *sql.Tx, seq uint64) error {
	rows, err := tx.QueryContext(ctx, "SELECT rowid FROM calls WHERE rowid = ?1 OR intent = ?1", int64(seq))
	if err != nil {
		return err
	}
	var of []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return errors.Join(err, rows.Close())
		}
		of = append(of, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	// Without secure-delete, FTS5 keeps deleted words until it merges their segment.
	if _, err := tx.ExecContext(ctx, "INSERT INTO calls (calls, rank) VALUES ('secure-delete', 1)"); err != nil {
		return err
	}
	var docs []Document
	for _, id := range of {
		if _, err := tx.ExecContext(ctx, "DELETE FROM calls WHERE rowid = ?", id); err != nil {
			return err
		}
		d, ok, err := x.documentAt(ctx, uint64(id))
		if err != nil {
			return err
		}
		if ok {
			docs = append(docs, d)
		}
	}
	if err := addCalls(ctx, tx, docs); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO calls (calls, rank) VALUES ('secure-delete', 0)")
	return err
}

func (x *Index) documentAt(ctx context.Context, seq uint64) (d Document, ok bool, err error) {
	r := journal.NewReader(x.opt.FS, x.opt.Dir, journal.ReaderOptions{From: seq, Limit: func() uint64 { return seq }})
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Next(ctx)
	if errors.Is(err, io.EOF) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	docs := documents{x.opt}
	return docs.of(ctx, record)
}

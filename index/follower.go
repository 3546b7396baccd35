package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// After each block the follower pauses for a multiple of the time that the block took. It uses a tenth of a core, and a
// fiftieth while the journal grows, since calls need the core then. If it falls too far behind it uses a tenth again,
// since queries read the entries that are not indexed.
const (
	restFactor   = 9
	busyFactor   = 49
	tooFarBehind = 1 << 16
)

// maxPause is the longest time between two attempts after an error.
const maxPause = time.Minute

// Follow indexes the journal as it grows until ctx is done, and then returns nil. The owner calls it on one goroutine
// and waits for it. It returns a *journal.DamageError or ErrClosed if it cannot continue. After a temporary error, such
// as a full disk, it retries with growing pauses. The Index works without it; the open end of Ranges then grows with
// the journal.
func (x *Index) Follow(ctx context.Context) error {
	again := time.Second
	stages := []*follower{{x: x, stage: &tagging{x: x}}, {x: x, stage: &reading{x: x}}}
	for ctx.Err() == nil {
		failed, err := x.followStages(ctx, stages)
		damage, _ := errors.AsType[*journal.DamageError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case damage != nil, errors.Is(err, ErrClosed):
			return fmt.Errorf("follow journal: %w", err)
		case errors.Is(err, ErrForeign), errors.Is(err, ErrDamaged):
			x.opt.Trouble(errors.Join(fmt.Errorf("index is rebuilt: %w", err), failed.rebuild()))
		case errors.Is(err, ErrOrder): // after a concurrent Drop
			x.opt.Trouble(fmt.Errorf("index is rebuilt: %w", err))
		default:
			x.opt.Trouble(fmt.Errorf("follow journal, again in %v: %w", again, err))
			x.opt.Sleep(ctx, again)
			again = min(2*again, maxPause)
			continue
		}
		x.opt.Sleep(ctx, x.opt.Poll)
	}
	return nil
}

// stage builds one part of the index from blocks of entries.
type stage interface {
	// watermark returns the last entry in the part.
	watermark(ctx context.Context) (journal.Head, error)
	// clear drops the block in memory.
	clear()
	// take adds one entry to the block in memory.
	take(ctx context.Context, record *journal.Record) error
	// commit writes the block in memory to the index: the entries after from, up to to.
	commit(ctx context.Context, from, to journal.Head) error
	// skip moves the watermark to to, past archived entries that the part does not have.
	skip(ctx context.Context, from, to journal.Head) error
	// readsArchive reports whether the part also has archived entries whose archive is available.
	readsArchive() bool
	// rebuild deletes the part, and makes an empty one.
	rebuild() error
}

// follower reads the journal from the watermark of a stage on, and passes the entries to the stage.
type follower struct {
	stage
	x       *Index
	reader  *journal.Reader // nil: begin opens it
	mark    journal.Head
	archive *journal.Anchor // of the archive that reader reads; nil: it reads the journal
}

// begin opens the journal after the watermark, unless a reader is open.
func (f *follower) begin(ctx context.Context) (err error) {
	if f.reader != nil {
		return nil
	}
	f.clear()
	if f.mark, err = f.watermark(ctx); err != nil {
		return err
	}
	if f.mark.Seq > f.x.opt.Synced() {
		return fmt.Errorf("entry %d is indexed, the journal ends before it: %w", f.mark.Seq, ErrForeign)
	}
	f.reader = journal.NewReader(f.x.opt.FS, f.x.opt.Dir, journal.ReaderOptions{From: f.mark.Seq + 1, Follow: true, Limit: f.x.opt.Synced})
	return nil
}

// end closes the reader.
func (f *follower) end() error {
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader, f.archive = nil, nil
	return err
}

// next indexes one block. It reads archived entries from their archive, or skips them.
func (f *follower) next(ctx context.Context) error {
	from := f.mark
	err := f.block(ctx)
	if gone, archived := errors.AsType[*journal.ArchivedError](err); archived && f.archive == nil && gone.Anchor.Seq > from.Seq {
		if err := f.end(); err != nil {
			return err
		}
		return f.readArchive(ctx, from, gone.Anchor)
	}
	if f.archive == nil || ctx.Err() != nil {
		return err
	}
	anchor := f.archive
	if err == nil && f.mark.Seq < anchor.Seq {
		return nil
	}
	if err != nil {
		f.x.opt.Trouble(fmt.Errorf("archived entries that are not indexed yet cannot be searched: %w", err))
		f.clear()
		err = f.skip(ctx, from, anchor.Head)
	}
	return errors.Join(err, f.end())
}

// readArchive opens the archive that has the entry after from, or skips the archived entries if it is not available.
func (f *follower) readArchive(ctx context.Context, from journal.Head, anchor *journal.Anchor) error {
	if !f.stage.readsArchive() {
		return f.skip(ctx, from, anchor.Head)
	}
	f.clear()
	part := journal.PartOf(f.x.opt.FS, anchor, from.Seq+1)
	if part == nil {
		if _, missing := journal.Parts(f.x.opt.FS, anchor); missing != nil && missing.Seq > from.Seq {
			anchor = missing
		}
		f.x.opt.Trouble(fmt.Errorf("archived entries that are not indexed yet cannot be searched: %s is not available", anchor.Archive))
		return f.skip(ctx, from, anchor.Head)
	}
	f.mark, f.archive, f.reader = from, part.Anchor, part.Reader(f.x.opt.FS, from.Seq+1)
	return nil
}

// boundary returns the seq of the last entry in the block of the entry after seq.
func boundary(seq uint64) uint64 { return last(blockOf(seq + 1)) }

// ready returns the seq up to which the journal must be on disk for the next block.
func (f *follower) ready() uint64 {
	if f.archive != nil {
		return min(f.archive.Seq, boundary(f.mark.Seq))
	}
	return boundary(f.mark.Seq)
}

// block indexes one block, or the part of it that is in the archive.
func (f *follower) block(ctx context.Context) error {
	from, end := f.mark, f.ready()
	for f.mark.Seq < end {
		record, err := f.reader.Next(ctx)
		if err != nil {
			return err
		}
		// The Reader checks the chain from its first entry on. This checks that the first entry follows the
		// watermark.
		if record.Seq != f.mark.Seq+1 || record.Prev != f.mark.Hash {
			return fmt.Errorf("entry %d does not follow the last indexed one: %w", record.Seq, ErrForeign)
		}
		if err := f.take(ctx, record); err != nil {
			return err
		}
		f.mark = journal.Head{Seq: record.Seq, Hash: record.Hash}
	}
	return f.commit(ctx, from, f.mark)
}

// followStages runs the stages until one fails, and returns it with its error. Blocks come before documents, since
// every query needs them.
func (x *Index) followStages(ctx context.Context, stages []*follower) (failed *follower, err error) {
	defer func() {
		for _, f := range stages {
			err = errors.Join(err, f.end())
		}
	}()
	for ctx.Err() == nil {
		next := ^uint64(0)
		for _, f := range stages {
			if err := f.begin(ctx); err != nil {
				return f, err
			}
			next = min(next, f.ready())
		}
		x.await(ctx, next)
		for _, f := range stages {
			if x.opt.Synced() < f.ready() {
				continue
			}
			start, synced := x.opt.Now(), x.opt.Synced()
			if err := f.next(ctx); err != nil {
				return f, err
			}
			rest := x.opt.Now().Sub(start)
			if grown := x.opt.Synced(); grown > synced && grown-f.mark.Seq < tooFarBehind {
				rest *= busyFactor
			} else {
				rest *= restFactor
			}
			x.opt.Sleep(ctx, rest)
		}
	}
	return nil, ctx.Err()
}

// await waits until the journal has the entry seq, the last of the next block.
func (x *Index) await(ctx context.Context, seq uint64) {
	for ctx.Err() == nil && x.opt.Synced() < seq {
		if x.opt.Await != nil {
			x.opt.Await(ctx, seq)
		} else {
			x.opt.Sleep(ctx, x.opt.Poll)
		}
	}
}

// tagging is the stage that adds the tags of entries to index.db.
type tagging struct {
	x     *Index
	block []Tags
}

func (t *tagging) watermark(ctx context.Context) (journal.Head, error) { return t.x.Watermark(ctx) }

func (t *tagging) take(_ context.Context, record *journal.Record) error {
	t.block = append(t.block, tagsOf(record))
	return nil
}

func (t *tagging) commit(ctx context.Context, _, _ journal.Head) error {
	defer t.clear()
	return t.x.Add(ctx, t.block)
}

func (t *tagging) clear() {
	clear(t.block) // so that the last block can be freed while the journal is idle
	t.block = t.block[:0]
}

func (t *tagging) skip(ctx context.Context, _, to journal.Head) error {
	t.clear()
	return t.x.begin(ctx, to)
}

func (t *tagging) readsArchive() bool { return false }

func (t *tagging) rebuild() error { return t.x.Drop() }

// reading is the stage that adds documents to search.db.
type reading struct {
	x     *Index
	block []Document
}

func (r *reading) watermark(ctx context.Context) (journal.Head, error) { return r.x.Searchable(ctx) }

func (r *reading) take(ctx context.Context, record *journal.Record) error {
	docs := documents{r.x.opt}
	d, ok, err := docs.of(ctx, record)
	if err == nil && ok {
		r.block = append(r.block, d)
	}
	return err
}

func (r *reading) commit(ctx context.Context, from, to journal.Head) error {
	defer r.clear()
	return r.x.addDocuments(ctx, from, to, r.block)
}

func (r *reading) clear() {
	clear(r.block)
	r.block = r.block[:0]
}

func (r *reading) skip(ctx context.Context, from, to journal.Head) error {
	r.clear()
	return r.x.addDocuments(ctx, from, to, nil)
}

func (r *reading) readsArchive() bool { return true }

func (r *reading) rebuild() error { return r.x.dropDatabase(&r.x.words) }

// tagsOf returns the tags of an entry, as a copy. The end of an effect has the tags of the call that it ends. A request
// that this kernel cannot read, such as one of a newer version, has no type, so that every query on messages matches
// it.
func tagsOf(record *journal.Record) Tags {
	t := Tags{
		Head: journal.Head{Seq: record.Seq, Hash: record.Hash}, Time: record.Time, PID: record.PID, Origin: record.Origin,
		Denied: refused(record.Outcome),
	}
	msg, failure := schema.Decode(record.Request, schema.OsMessage)
	if failure != nil {
		return t
	}
	t.Type, t.ID, t.Causation = msg.Called(), strings.Clone(msg.Meta.ID), strings.Clone(msg.Meta.Causation)
	t.Correlation = strings.Clone(msg.Meta.Correlation)
	if end := schema.EndOf(&msg); end != nil {
		t.Type, t.PID, t.ID, t.Causation = end.Called(), end.PID, t.Causation, strings.Clone(end.Causation)
	}
	t.Type, t.Key, t.Holders = strings.Clone(t.Type), schema.MemoryKeyOf(&msg), schema.HoldersOf(&msg, record.Outcome)
	return t
}

// refused reports whether an outcome is, or may be, a refusal; an unreadable one may be.
func refused(outcome []byte) bool {
	if bytes.HasPrefix(outcome, []byte(`{"kind":"reply"`)) { // most outcomes
		return false
	}
	o, err := schema.DecodeOutcome(outcome)
	return err != nil || o.Err != nil && o.Err.Denied()
}

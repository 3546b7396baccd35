package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// The follower rests for so many times as long as it worked: it takes a tenth of a core, and a fiftieth while the journal
// grows, since that is when others need the core. Once it is so many entries behind it takes a tenth all the same, since
// questions have to read what it leaves.
const (
	restFactor   = 9
	busyFactor   = 49
	tooFarBehind = 1 << 16
)

// maxPause is the longest time between two attempts to go on after an error.
const maxPause = time.Minute

// Follow keeps the index up with the journal until ctx is done, and then returns nil. The owner calls it on one goroutine and
// waits for it. It returns an error where it cannot go on: a *journal.DamageError, or ErrClosed. The Index works on without
// it; the open end of Ranges then grows with the journal. An error that may pass, such as a full disk, is tried again, ever
// less often.
func (x *Index) Follow(ctx context.Context) error {
	again := time.Second
	stages := []*follower{{x: x, stage: &tagging{x: x}}, {x: x, stage: &reading{x: x}}}
	for ctx.Err() == nil {
		failed, err := x.follow(ctx, stages)
		damage, _ := errors.AsType[*journal.DamageError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case damage != nil, errors.Is(err, ErrClosed):
			return fmt.Errorf("follow journal: %w", err)
		case errors.Is(err, ErrForeign), errors.Is(err, ErrDamaged):
			x.opt.Trouble(errors.Join(fmt.Errorf("index is made anew: %w", err), failed.remake()))
		case errors.Is(err, ErrOrder): // dropped by another: begin again
			x.opt.Trouble(fmt.Errorf("index is made anew: %w", err))
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

// stage is what makes a part of the index of blocks of entries.
type stage interface {
	// watermark is the last entry that the part has.
	watermark(ctx context.Context) (journal.Head, error)
	// clear forgets what was taken and not committed.
	clear()
	// take takes in one entry.
	take(ctx context.Context, record *journal.Record) error
	// commit makes the block that was taken, which lies after from and up to to, part of the index.
	commit(ctx context.Context, from, to journal.Head) error
	// skip goes on behind what was archived before it was taken in; ok is false where the part needs every entry.
	skip(ctx context.Context, from, to journal.Head) (ok bool, err error)
	// remake throws the part away.
	remake() error
}

// follower has a stage go on from its watermark.
type follower struct {
	stage
	x      *Index
	reader *journal.Reader // nil: it begins again at the watermark
	mark   journal.Head
	over   bool // what it needs next was archived
}

// begin opens the journal behind the watermark.
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

// end closes the journal.
func (f *follower) end() error {
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader = nil
	return err
}

// next takes in one block, or skips what was archived.
func (f *follower) next(ctx context.Context) error {
	from := f.mark
	err := f.block(ctx)
	gone, archived := errors.AsType[*journal.ArchivedError](err)
	if !archived || gone.Anchor.Seq <= from.Seq {
		return err
	}
	ok, err := f.skip(ctx, from, gone.Anchor.Head)
	if f.over = err == nil && !ok; f.over {
		f.x.opt.Trouble(fmt.Errorf("the index cannot be made of a journal whose beginning is archived: questions read the journal: %w", gone))
	}
	return errors.Join(err, f.end())
}

// block takes in one block.
func (f *follower) block(ctx context.Context) error {
	from := f.mark
	for range BlockEntries {
		record, err := f.reader.Next(ctx)
		if err != nil {
			return err
		}
		// The Reader checks the chain from its first entry on; that this one follows the watermark is checked here.
		if record.Seq != f.mark.Seq+1 || record.Prev != f.mark.Hash {
			return fmt.Errorf("entry %d does not follow what is indexed: %w", record.Seq, ErrForeign)
		}
		if err := f.take(ctx, record); err != nil {
			return err
		}
		f.mark = journal.Head{Seq: record.Seq, Hash: record.Hash}
	}
	return f.commit(ctx, from, f.mark)
}

// follow goes on until something is wrong, and returns the stage of which that is true. Blocks come before documents, since
// every question asks for them.
func (x *Index) follow(ctx context.Context, stages []*follower) (failed *follower, err error) {
	defer func() {
		for _, f := range stages {
			err = errors.Join(err, f.end())
		}
	}()
	for ctx.Err() == nil {
		next := ^uint64(0)
		stages = slices.DeleteFunc(slices.Clone(stages), func(f *follower) bool { return f.over })
		for _, f := range stages {
			if err := f.begin(ctx); err != nil {
				return f, err
			}
			next = min(next, f.mark.Seq+BlockEntries)
		}
		x.await(ctx, next)
		for _, f := range stages {
			if x.opt.Synced() < f.mark.Seq+BlockEntries {
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

// await waits until the journal has an entry: nothing is read that cannot be committed soon.
func (x *Index) await(ctx context.Context, seq uint64) {
	for ctx.Err() == nil && x.opt.Synced() < seq {
		if x.opt.Await != nil {
			x.opt.Await(ctx, seq)
		} else {
			x.opt.Sleep(ctx, x.opt.Poll)
		}
	}
}

// tagging is the stage that tags blocks.
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
	clear(t.block) // a journal at rest keeps none of the last block in memory
	t.block = t.block[:0]
}

func (t *tagging) skip(context.Context, journal.Head, journal.Head) (bool, error) { return false, nil }

func (t *tagging) remake() error { return t.x.Drop() }

// reading is the stage that makes documents.
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

func (r *reading) skip(ctx context.Context, from, to journal.Head) (bool, error) {
	r.clear()
	return true, r.x.addDocuments(ctx, from, to, nil)
}

func (r *reading) remake() error { return r.x.drop(&r.x.words) }

// tagsOf reads what is indexed of an entry, as a copy. The end of an effect is found as the call that it ends. A request that
// this kernel cannot read, as of a newer one, has no type, so that no question misses it.
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

// refused reports whether an outcome is a refusal. One that cannot be read may be.
func refused(outcome []byte) bool {
	if bytes.HasPrefix(outcome, []byte(`{"kind":"reply"`)) { // as most are
		return false
	}
	o, err := schema.DecodeOutcome(outcome)
	return err != nil || o.Err != nil && o.Err.Denied()
}

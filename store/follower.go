package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// So many times as long as it worked does a Follower rest: it takes a tenth of a core, and a fiftieth while the journal grows, since
// that is when others need the core.
const (
	restFactor = 9
	busyFactor = 49
)

// maxPause is the longest time between two attempts to go on after an error.
const maxPause = time.Minute

// A Follower keeps the index of a Store up with the journal. It takes at most a tenth of one core: after each block of
// entries it rests for nine times as long as that took, and for 49 times while the journal grows.
type Follower struct {
	s   *Store
	opt FollowerOptions
}

// NewFollower returns a Follower; the owner calls Run on a goroutine of its own and waits for it. There is to be one for a
// Store.
func NewFollower(s *Store, o FollowerOptions) *Follower {
	return &Follower{s: s, opt: o.withDefaults()}
}

// Run indexes until ctx is done, and then returns nil. It returns an error where it cannot go on: a *journal.DamageError,
// or ErrClosed. The Store works on without it; the open end of Ranges then grows with the journal. What may pass, such as
// a process without a descriptor left, is tried again, ever less often.
func (f *Follower) Run(ctx context.Context) error {
	again := time.Second
	for ctx.Err() == nil {
		err := f.follow(ctx)
		damage, _ := errors.AsType[*journal.DamageError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case damage != nil, errors.Is(err, ErrClosed):
			return fmt.Errorf("follow journal: %w", err)
		case errors.Is(err, ErrForeign), errors.Is(err, ErrDamaged):
			if dropErr := f.s.DropIndex(ctx); dropErr != nil {
				err = errors.Join(err, dropErr)
			}
			f.opt.Trouble(fmt.Errorf("index is made anew: %w", err))
		case errors.Is(err, ErrOrder): // dropped by another: begin again
			f.opt.Trouble(fmt.Errorf("index is made anew: %w", err))
		default:
			f.opt.Trouble(fmt.Errorf("follow journal, again in %v: %w", again, err))
			f.opt.Sleep(ctx, again)
			again = min(2*again, maxPause)
			continue
		}
		f.opt.Sleep(ctx, f.opt.Poll)
	}
	return nil
}

// follow goes on from the watermark until something is wrong.
func (f *Follower) follow(ctx context.Context) (err error) {
	mark, err := f.s.Watermark(ctx)
	if err != nil {
		return err
	}
	x, err := f.s.Indexer(ctx)
	if err != nil {
		return err
	}
	if mark.Seq > f.opt.Limit() {
		return fmt.Errorf("%w: entry %d is indexed, the journal ends before it", ErrForeign, mark.Seq)
	}
	r := journal.NewReader(f.opt.FS, f.opt.Dir, journal.ReaderOptions{From: x.Next(), Limit: f.opt.Limit})
	defer func() { err = errors.Join(err, r.Close()) }()
	w := worker{x: x, r: r, last: mark}
	for {
		if err := f.await(ctx, x); err != nil {
			return err
		}
		start, limit := f.opt.Now(), f.opt.Limit()
		err := w.block(ctx)
		if errors.Is(err, io.EOF) {
			f.opt.Sleep(ctx, f.opt.Poll)
			continue
		}
		if err != nil {
			return err
		}
		if x.Full() {
			if err := f.commit(ctx, x); err != nil {
				return err
			}
		}
		rest := f.opt.Now().Sub(start)
		if f.opt.Limit() > limit {
			rest *= busyFactor
		} else {
			rest *= restFactor
		}
		f.opt.Sleep(ctx, rest)
	}
}

// await waits until the journal has the rest of the run: nothing is read that cannot be committed soon.
func (f *Follower) await(ctx context.Context, x *Indexer) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// The seq of the last entry of a run is a multiple of its length.
		if end := (x.Next() + RunEntries - 1) / RunEntries * RunEntries; f.opt.Limit() >= end {
			return nil
		} else if f.opt.Await != nil {
			f.opt.Await(ctx, end)
		} else {
			f.opt.Sleep(ctx, f.opt.Poll)
		}
	}
}

// commit tries until it succeeds, or trying again is of no use: a disk may be full now and have room later.
func (f *Follower) commit(ctx context.Context, x *Indexer) error {
	for {
		err := x.Commit(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrOrder) || errors.Is(err, ErrClosed) || errors.Is(err, ErrDamaged) {
			return err
		}
		f.opt.Trouble(err)
		f.opt.Sleep(ctx, f.opt.Poll)
	}
}

// A worker carries entries from the journal to the index.
type worker struct {
	x    *Indexer
	r    *journal.Reader
	last journal.Head
	tags Tags
}

// block takes in a block of entries, or as many as there are.
func (w *worker) block(ctx context.Context) error {
	for range blockEntries {
		record, err := w.r.Next(ctx)
		if err != nil {
			return err
		}
		// The Reader checks the chain from its first entry on; that this one follows the watermark is checked here.
		if record.Seq != w.last.Seq+1 || record.Prev != w.last.Hash {
			return fmt.Errorf("%w: entry %d does not follow what is indexed", ErrForeign, record.Seq)
		}
		w.last = journal.Head{Seq: record.Seq, Hash: record.Hash}
		tagsOf(record, &w.tags)
		if err := w.x.Add(&w.tags); err != nil {
			return err
		}
		if w.x.Full() {
			return nil
		}
	}
	return nil
}

// tagsOf reads what is indexed of an entry. The end of an effect is found as what it is the verdict on: its call. A request that this kernel cannot read, as it is of a newer one perhaps, is
// given no type, so that no question misses it.
func tagsOf(record *journal.Record, t *Tags) {
	*t = Tags{Head: journal.Head{Seq: record.Seq, Hash: record.Hash}, Time: record.Time, PID: record.PID}
	msg, failure := schema.Decode(record.Request, schema.OsMessage)
	if failure == nil {
		t.Type, t.Correlation = msg.Called(), msg.Meta.Correlation
		if end := schema.EndOf(&msg); end != nil {
			t.Type, t.PID = end.Called(), end.PID
		}
	}
}

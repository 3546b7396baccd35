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

// The follower rests for so many times as long as it worked: it takes a tenth of a core, and a fiftieth while the journal
// grows, since that is when others need the core.
const (
	restFactor = 9
	busyFactor = 49
)

// maxPause is the longest time between two attempts to go on after an error.
const maxPause = time.Minute

// Follow keeps the index up with the journal until ctx is done, and then returns nil. The owner calls it on one goroutine and
// waits for it. It returns an error where it cannot go on: a *journal.DamageError, or ErrClosed. The Index works on without
// it; the open end of Ranges then grows with the journal. An error that may pass, such as a full disk, is tried again, ever
// less often.
func (x *Index) Follow(ctx context.Context) error {
	again := time.Second
	for ctx.Err() == nil {
		err := x.follow(ctx)
		damage, _ := errors.AsType[*journal.DamageError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case damage != nil, errors.Is(err, ErrClosed):
			return fmt.Errorf("follow journal: %w", err)
		case errors.Is(err, ErrForeign), errors.Is(err, ErrDamaged):
			x.opt.Trouble(errors.Join(fmt.Errorf("index is made anew: %w", err), x.Drop()))
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

// follow goes on from the watermark until something is wrong.
func (x *Index) follow(ctx context.Context) (err error) {
	mark, err := x.Watermark(ctx)
	if err != nil {
		return err
	}
	if mark.Seq > x.opt.Synced() {
		return fmt.Errorf("entry %d is indexed, the journal ends before it: %w", mark.Seq, ErrForeign)
	}
	r := journal.NewReader(x.opt.FS, x.opt.Dir, journal.ReaderOptions{From: mark.Seq + 1, Follow: true, Limit: x.opt.Synced})
	defer func() { err = errors.Join(err, r.Close()) }()
	for block := make([]Tags, BlockEntries); ; {
		x.await(ctx, mark.Seq+BlockEntries)
		start, synced := x.opt.Now(), x.opt.Synced()
		for i := range block {
			record, err := r.Next(ctx)
			if err != nil {
				return err
			}
			// The Reader checks the chain from its first entry on; that this one follows the watermark is checked here.
			if record.Seq != mark.Seq+1 || record.Prev != mark.Hash {
				return fmt.Errorf("entry %d does not follow what is indexed: %w", record.Seq, ErrForeign)
			}
			block[i] = tagsOf(record)
			mark = block[i].Head
		}
		if err := x.Add(ctx, block); err != nil {
			return err
		}
		rest := x.opt.Now().Sub(start)
		if x.opt.Synced() > synced {
			rest *= busyFactor
		} else {
			rest *= restFactor
		}
		x.opt.Sleep(ctx, rest)
	}
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

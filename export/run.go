package export

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema/fault"
)

// Options configure an export.
type Options struct {
	// Dial connects to the kernel. A live export calls it again after the connection was lost.
	Dial func(ctx context.Context, again bool) (*client.Client, error)
	// After is the position after which the export begins.
	After Position
	// Live exports follow the journal; others end with the last entry that existed at their start.
	Live bool
	// Arguments adds the requests and payloads of calls.
	Arguments bool
	Sink      Sink
	// Moved is called with the position after each delivery; it may be nil.
	Moved func(at Position) error
	// Notice is called with the reason, for people, why the export waits.
	Notice func(text string)
}

// Bounds of records that are read and not delivered.
const (
	queued    = 64
	batchSize = 512
	batchData = 1 << 20
)

// linger is the time for which a record waits for others in its batch.
const linger = 100 * time.Millisecond

// Run exports until every entry that existed at the start is delivered; a live export until ctx ends, whose cause it
// returns.
func Run(ctx context.Context, o Options) error {
	r := transfer{Options: o}
	wait := pace()
	for redial := false; ; redial = true {
		before := r.After
		err := r.connect(ctx, redial)
		var restored restoredError
		switch {
		case errors.As(err, &restored):
			r.from = restored.from
			continue
		case errors.Is(err, errAgent):
			r.agent = true
			continue
		case err == nil || !o.Live || ctx.Err() != nil || !gone(err) || !redial && before == r.After && !r.connected:
			return err
		}
		if r.After != before {
			wait.Reset()
		}
		if !r.noticed {
			o.Notice(err.Error() + "; the export continues when the kernel runs again")
			r.noticed = true
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gone reports whether err means that the kernel has ended, or has not started yet.
func gone(err error) bool {
	for _, id := range []fault.ID{fault.DaemonHungUp, fault.DaemonNotRunning, fault.DaemonUnreachable, fault.DaemonNoAnswer} {
		if errors.Is(err, id) {
			return true
		}
	}
	return false
}

// transfer is a running export.
type transfer struct {
	Options
	from      int64 // entry to begin with after a restore of the journal; 0: the one after After
	agent     bool  // the connection is an agent's
	connected bool  // whether a connection has succeeded
	noticed   bool  // whether Notice was called for this interruption
}

// connect exports over one connection.
func (r *transfer) connect(ctx context.Context, redial bool) (err error) {
	c, err := r.Dial(ctx, redial)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r.connected, r.noticed = true, false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	records, ended := make(chan *Record, queued), make(chan error, 1)
	go func() {
		f := feed{client: c, arguments: r.Arguments, agent: r.agent, live: r.Live}
		err := f.run(ctx, r.After, r.from, func(one *Record) error {
			select {
			case records <- one:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		close(records)
		ended <- err
	}()
	err = r.deliver(ctx, records)
	cancel(err)
	if feedErr := <-ended; err == nil {
		err = feedErr
	}
	return err
}

// deliver delivers records until there are no more.
func (r *transfer) deliver(ctx context.Context, records <-chan *Record) error {
	for {
		batch := nextBatch(records)
		if len(batch) == 0 {
			return nil
		}
		if err := r.Sink.Deliver(ctx, batch); err != nil {
			return err
		}
		r.After, r.from = batch[len(batch)-1].At, 0
		if r.Moved != nil {
			if err := r.Moved(r.After); err != nil {
				return err
			}
		}
	}
}

// nextBatch waits for a record, and adds those that follow within linger, within the bounds.
func nextBatch(records <-chan *Record) (batch []*Record) {
	first, ok := <-records
	if !ok {
		return nil
	}
	batch = append(batch, first)
	soon := time.NewTimer(linger)
	defer soon.Stop()
	for size := sizeOf(first); len(batch) < batchSize && size < batchData; {
		select {
		case next, ok := <-records:
			if !ok {
				return batch
			}
			batch, size = append(batch, next), size+sizeOf(next)
		case <-soon.C:
			return batch
		}
	}
	return batch
}

// size returns the approximate memory of a record in bytes.
func sizeOf(r *Record) int {
	return 512 + len(r.Entry.Request) + len(r.Entry.Payload) + len(r.Entry.Error)
}

// Bounds of the time between two attempts.
const (
	minWait = 200 * time.Millisecond
	maxWait = 15 * time.Second
)

// pace is the time between two attempts of an export.
func pace() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = minWait, maxWait
	return b
}

// retry calls try until it succeeds, its error is final, ctx ends, or patience is over; 0: without limit. With an
// error, try returns the minimum time before the next attempt; 0: the error is final. notice is called before the first
// wait.
func retry(ctx context.Context, patience time.Duration, notice func(text string), try func() (least time.Duration, err error)) error {
	wait, begin := pace(), time.Now()
	for noticed := false; ; noticed = true {
		least, err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case least == 0 || patience > 0 && time.Since(begin) > patience:
			return err
		case !noticed:
			notice(err.Error() + "; the export tries again")
		}
		select {
		case <-time.After(max(least, wait.NextBackOff())):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

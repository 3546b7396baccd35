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
	// After is the position of the export.
	After Position
	// Live exports follow the record; others end with the last entry at their start.
	Live bool
	// Arguments adds the arguments and answers of calls.
	Arguments bool
	Sink      Sink
	// Moved is called with the position of the export after each delivery; nil: it is not reported.
	Moved func(at Position) error
	// Notice tells people why the export waits.
	Notice func(text string)
}

// Bounds of records that are read but not delivered.
const (
	queued    = 64
	batchSize = 512
	batchData = 1 << 20
)

// linger is how long a record waits for others that are delivered with it.
const linger = 100 * time.Millisecond

// Run exports until everything that was there is delivered; a live export until ctx ends, whose cause it returns.
func Run(ctx context.Context, o Options) error {
	r := transfer{Options: o}
	wait := pace()
	for redial := false; ; redial = true {
		before := r.After
		err := r.connect(ctx, redial)
		var restored again
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
		if !r.told {
			o.Notice(err.Error() + "; the export goes on when the kernel is back")
			r.told = true
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gone reports whether the error means that the kernel has ended, or has not started yet.
func gone(err error) bool {
	for _, id := range []fault.ID{fault.DaemonHungUp, fault.DaemonNotRunning, fault.DaemonUnreachable, fault.DaemonNoAnswer} {
		if errors.Is(err, id) {
			return true
		}
	}
	return false
}

// transfer is an export that is running.
type transfer struct {
	Options
	from      int64 // entry to begin with after the record was restored; 0: the one after After
	agent     bool  // the connection is an agent's
	connected bool  // once
	told      bool  // that the kernel is away
}

// connect exports over one connection.
func (r *transfer) connect(ctx context.Context, redial bool) (err error) {
	c, err := r.Dial(ctx, redial)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r.connected, r.told = true, false
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
		batch := gather(records)
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

// gather waits for a record, and takes those that come soon after it, within the bounds.
func gather(records <-chan *Record) (batch []*Record) {
	first, ok := <-records
	if !ok {
		return nil
	}
	batch = append(batch, first)
	soon := time.NewTimer(linger)
	defer soon.Stop()
	for size := weight(first); len(batch) < batchSize && size < batchData; {
		select {
		case next, ok := <-records:
			if !ok {
				return batch
			}
			batch, size = append(batch, next), size+weight(next)
		case <-soon.C:
			return batch
		}
	}
	return batch
}

// weight is about how much memory a record takes.
func weight(r *Record) int {
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

// retry calls try until it succeeds, its error is final, ctx ends, or patience is over; 0: it is endless. With an error, try
// returns the least time before the next attempt; 0: there is none. notice is called before the first wait.
func retry(ctx context.Context, patience time.Duration, notice func(text string), try func() (least time.Duration, err error)) error {
	wait, begin := pace(), time.Now()
	for told := false; ; told = true {
		least, err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case least == 0 || patience > 0 && time.Since(begin) > patience:
			return err
		case !told:
			notice(err.Error() + "; it is tried again")
		}
		select {
		case <-time.After(max(least, wait.NextBackOff())):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

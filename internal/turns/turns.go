// Package turns shares a number of goroutines fairly between parties.
package turns

import (
	"context"
	"sync"
)

// Turns are limits of how many goroutines work at a time: each party, and all together. Those that wait for the limit of their party do
// not count in the total.
type Turns struct {
	free int64
	each int
	all  chan struct{}

	mu  sync.Mutex
	own map[int64]*lane
}

type lane struct {
	slots chan struct{}
	users int // callers that use a slot or wait for one
}

// New returns turns for each goroutines of a party, and all in total. The party free does not count in the total, and so waits for no
// other.
func New(each, all int, free int64) *Turns {
	return &Turns{free: free, each: each, all: make(chan struct{}, all), own: make(map[int64]*lane)}
}

// Take waits for a turn of a party. It returns a function that releases it, or the cause of the end of ctx if that ends first.
func (t *Turns) Take(ctx context.Context, party int64) (back func(), err error) {
	own := t.join(party)
	if err := take(ctx, own.slots); err != nil {
		t.leave(party)
		return nil, err
	}
	release := func() {
		<-own.slots
		t.leave(party)
	}
	if party == t.free {
		return release, nil
	}
	if err := take(ctx, t.all); err != nil {
		release()
		return nil, err
	}
	return func() {
		<-t.all
		release()
	}, nil
}

// take puts a token into slots. If ctx has ended it does not, even if there is room.
func take(ctx context.Context, slots chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *Turns) join(party int64) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own[party]
	if own == nil {
		own = &lane{slots: make(chan struct{}, t.each)}
		t.own[party] = own
	}
	own.users++
	return own
}

func (t *Turns) leave(party int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.own[party]; own.users == 1 {
		delete(t.own, party)
	} else {
		own.users--
	}
}

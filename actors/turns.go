package actors

import (
	"context"
	"sync"
)

// turns bounds how many are at work at the same time, in all and for each process. Those of a process that wait for their
// own do not stand in the way of others.
type turns struct {
	each int
	all  chan struct{}

	mu  sync.Mutex
	own map[int64]*lane
}

type lane struct {
	slots chan struct{}
	users int // callers that hold a slot or wait for one
}

func newTurns(each, all int) turns {
	return turns{each: each, all: make(chan struct{}, all), own: make(map[int64]*lane)}
}

// take waits for a turn of pid, and returns how to give it back, or why ctx ended before.
func (t *turns) take(ctx context.Context, pid int64) (back func(), err error) {
	own := t.join(pid)
	if err := take(ctx, own.slots); err != nil {
		t.leave(pid)
		return nil, err
	}
	if err := take(ctx, t.all); err != nil {
		<-own.slots
		t.leave(pid)
		return nil, err
	}
	return func() {
		<-t.all
		<-own.slots
		t.leave(pid)
	}, nil
}

// take puts one into slots. Once ctx has ended it does not, even where there is room.
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

func (t *turns) join(pid int64) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own[pid]
	if own == nil {
		own = &lane{slots: make(chan struct{}, t.each)}
		t.own[pid] = own
	}
	own.users++
	return own
}

func (t *turns) leave(pid int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.own[pid]; own.users == 1 {
		delete(t.own, pid)
	} else {
		own.users--
	}
}

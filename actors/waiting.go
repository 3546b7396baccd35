package actors

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/schema"
)

// parked is a batch of one call that waits for an event in its domain.
type parked struct {
	batch *batch
	pid   int64       // of its call; if a timer's message is late, the batch has been reused
	timer *time.Timer // nil: it waits without a limit
}

// LogValue names the call without its data.
func (p *parked) LogValue() slog.Value { return p.batch.LogValue() }

// hangUp tells a domain that a client has disconnected: its waiting calls are cancelled.
type hangUp struct{ conn string }

// park keeps b until the PID of its call is woken, or for the given time, counted from when it was first parked.
func (d *domain) park(ctx actor.Context, b *batch, wait time.Duration) {
	b.calls[0].Parked = true
	if b.until.IsZero() {
		b.until = time.Now().Add(wait)
	}
	p := &parked{batch: b}
	self, root := ctx.Self(), d.kernel.root
	p.timer = time.AfterFunc(time.Until(b.until), func() { root.Send(self, p) })
	d.keep(p)
}

// keep stores a parked batch.
func (d *domain) keep(p *parked) {
	if d.parked == nil {
		d.parked = make(map[int64][]*parked)
	}
	p.pid = p.batch.calls[0].PID
	d.parked[p.pid] = append(d.parked[p.pid], p)
}

// take removes the parked batches of a process that pick selects.
func (d *domain) take(pid int64, pick func(*parked) bool) (taken []*parked) {
	left := slices.DeleteFunc(d.parked[pid], func(p *parked) bool {
		if !pick(p) {
			return false
		}
		if p.timer != nil {
			p.timer.Stop()
		}
		taken = append(taken, p)
		return true
	})
	if d.parked[pid] = left; len(left) == 0 {
		delete(d.parked, pid)
	}
	return taken
}

// unpark decides a call whose time has passed.
func (d *domain) unpark(ctx actor.Context, p *parked) {
	for range d.take(p.pid, func(one *parked) bool { return one == p }) {
		if p.batch.question == "" {
			p.batch.calls[0].Final = true
		}
		d.queue = append(d.queue, p.batch)
	}
}

// wake decides the waiting calls of these processes again, before any later message.
func (d *domain) wake(_ actor.Context, pids []int64) {
	if len(d.parked) == 0 {
		return
	}
	for _, pid := range pids {
		for _, p := range d.take(pid, func(*parked) bool { return true }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

// wakeUp makes a domain decide all its waiting calls again.
type wakeUp struct{}

// WakeUp decides the waiting calls of a domain again, because of an event that is not a call. It may be called until Close.
func (k *Kernel) WakeUp(name schema.Domain) { k.root.Send(k.domains[name], wakeUp{}) }

// wakeAll decides all waiting calls again, before any later message.
func (d *domain) wakeAll(ctx actor.Context) {
	d.wake(ctx, slices.Sorted(maps.Keys(d.parked)))
	d.stateChanged()
}

// hangUp cancels the waiting calls of a connection. A call that is still queued will not wait.
func (d *domain) hangUp(ctx actor.Context, conn string) {
	for _, pid := range slices.Sorted(maps.Keys(d.parked)) {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.calls[0].Caller.Conn == conn }) {
			p.batch.sender.giveUp(ctx, d)
		}
	}
	waiting := d.queue
	if p := d.pended[conn]; p != nil {
		waiting = slices.Concat(waiting, p.behind)
	}
	for _, b := range waiting {
		if b.calls[0].Caller.Conn == conn {
			b.sender.final()
		}
	}
	for _, b := range d.unwatch(func(b *batch) bool { return b.calls[0].Caller.Conn == conn }) {
		b.sender.giveUp(ctx, d)
	}
}

// stopped drops all parked calls: their connections have ended.
func (d *domain) stopped(ctx actor.Context) {
	for pid := range d.parked {
		d.take(pid, func(*parked) bool { return true })
	}
	d.watching = nil
	d.abandon() // the state must not be saved if it could not be built
	for name := range d.watched {
		ctx.Unwatch(d.kernel.domains[name])
	}
}

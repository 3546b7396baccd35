package actors

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/schema"
)

// parked is a batch of one call that waits for something to happen in its domain.
type parked struct {
	batch *batch
	pid   int64       // its call's; when a timer's message comes late, the batch is somebody else's
	timer *time.Timer // nil: it waits without end
}

// LogValue names the call without its data.
func (p *parked) LogValue() slog.Value { return p.batch.LogValue() }

// hangUp tells a domain that a connection's peer has hung up: its calls are given up.
type hangUp struct{ conn string }

// park keeps b until its call's PID is woken, or for the given time at most, counted from when it was first parked.
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

// keep notes a parked batch.
func (d *domain) keep(p *parked) {
	if d.parked == nil {
		d.parked = make(map[int64][]*parked)
	}
	p.pid = p.batch.calls[0].PID
	d.parked[p.pid] = append(d.parked[p.pid], p)
}

// take takes the parked batches of a process out that are picked.
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

// unpark decides a call whose time is up.
func (d *domain) unpark(ctx actor.Context, p *parked) {
	for range d.take(p.pid, func(one *parked) bool { return one == p }) {
		if p.batch.question == "" {
			p.batch.calls[0].Final = true
		}
		d.queue = append(d.queue, p.batch)
	}
}

// wake has the waiting calls of the given processes decided again, before anything that comes in later.
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

// wakeUp has all waiting calls of a domain decided again.
type wakeUp struct{}

// WakeUp has the waiting calls of a domain decided again, because what they wait for is no call's doing. It may be called
// until Close.
func (k *Kernel) WakeUp(name schema.Domain) { k.root.Send(k.domains[name], wakeUp{}) }

// wakeAll is WakeUp, before anything that comes in later.
func (d *domain) wakeAll(ctx actor.Context) {
	d.wake(ctx, slices.Sorted(maps.Keys(d.parked)))
	d.hear()
}

// hangUp ends the waiting of a connection's calls. One that has not come to its turn yet will not wait.
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
	d.abandon() // nobody is to save a state that could not be made
	for name := range d.watched {
		ctx.Unwatch(d.kernel.domains[name])
	}
}

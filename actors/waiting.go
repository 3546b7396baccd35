package actors

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/schema"
)

// parked is a batch of one call that waits for something to happen in its domain.
type parked struct {
	batch *batch
	timer *time.Timer
}

// LogValue names the call without its data.
func (p *parked) LogValue() slog.Value { return p.batch.LogValue() }

// hangUp tells a domain that a connection's peer has gone: nobody waits there any more.
type hangUp struct{ conn string }

// park keeps b until its call's PID is woken, or for the given time at most, counted from when it was first parked.
func (d *domain) park(ctx actor.Context, b *batch, wait time.Duration) {
	if b.until.IsZero() {
		b.until = time.Now().Add(wait)
	}
	p := &parked{batch: b}
	self, root := ctx.Self(), d.kernel.root
	p.timer = time.AfterFunc(time.Until(b.until), func() { root.Send(self, p) })
	d.parked = append(d.parked, p)
}

// unpark decides a call whose time is up.
func (d *domain) unpark(ctx actor.Context, p *parked) {
	if i := slices.Index(d.parked, p); i >= 0 {
		d.parked = slices.Delete(d.parked, i, i+1)
		p.batch.calls[0].Final = true
		d.queue = append(d.queue, p.batch)
	}
}

// wake has the waiting calls of the given processes decided again, before anything that comes in later.
func (d *domain) wake(_ actor.Context, pids []int64) {
	if len(pids) == 0 || len(d.parked) == 0 {
		return
	}
	woken := make(map[int64]bool, len(pids))
	for _, pid := range pids {
		woken[pid] = true
	}
	d.parked = slices.DeleteFunc(d.parked, func(p *parked) bool {
		if !woken[p.batch.calls[0].PID] {
			return false
		}
		p.timer.Stop()
		d.queue = append(d.queue, p.batch)
		return true
	})
}

// wakeUp has all waiting calls of a domain decided again.
type wakeUp struct{}

// WakeUp has the waiting calls of a domain decided again, because what they wait for is no call's doing. It may be called
// until Close.
func (k *Kernel) WakeUp(name schema.Domain) { k.root.Send(k.domains[name], wakeUp{}) }

// wakeAll is WakeUp, before anything that comes in later.
func (d *domain) wakeAll() {
	for _, p := range d.parked {
		p.timer.Stop()
		d.queue = append(d.queue, p.batch)
	}
	d.parked = nil
}

// hangUp ends the waiting of a connection's calls. One that has not come to its turn yet will not wait.
func (d *domain) hangUp(ctx actor.Context, conn string) {
	for _, b := range d.queue {
		if b.alone && b.calls[0].Caller.Conn == conn {
			b.calls[0].Final = true
		}
	}
	d.parked = slices.DeleteFunc(d.parked, func(p *parked) bool {
		call := &p.batch.calls[0]
		if call.Caller.Conn != conn {
			return false
		}
		p.timer.Stop()
		call.Err = schema.Errorf(schema.Unavailable, "%s stopped waiting: its connection is closed, or the kernel is shutting down", call.Message.Type)
		d.kernel.keys.settle(call)
		d.forward(ctx, p.batch)
		return true
	})
}

// stopped ends all waiting: nobody is there any more to be answered.
func (d *domain) stopped(ctx actor.Context) {
	for _, p := range d.parked {
		p.timer.Stop()
	}
	d.parked = nil
	for name := range d.watched {
		ctx.Unwatch(d.kernel.domains[name])
	}
}

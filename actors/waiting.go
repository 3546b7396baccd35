package actors

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// unpark decides a call whose time has passed.
func (d *domain) unpark(ctx actor.Context, p *parked) {
	for range d.take(p.pid, func(one *parked) bool { return one == p }) {
		if p.batch.question == "" {
			p.batch.calls[0].Final = true
		}
		d.queue = append(d.queue, p.batch)
	}
}

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

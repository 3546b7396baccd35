package actors

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
)

// reading is the outcome of a call that a goroutine computed (kernel.Result.Read). The domain runs other calls meanwhile;
// the batch has only that call, and belongs to the goroutine.
type reading struct {
	batch   *batch
	begun   time.Time
	epoch   uint64 // of the journal in which it began
	changes uint64 // the number of changes when it was computed
	result  kernel.Result
	err     error
}

// LogValue names the call without its data.
func (r reading) LogValue() slog.Value { return r.batch.LogValue() }

// read computes the outcome of b on a goroutine. It is cancelled when the call's connection closes.
func (d *domain) read(b *batch, read func(context.Context) (kernel.Result, error), begun time.Time) {
	self, root := d.kernel.domains[d.name], d.kernel.root
	r := reading{batch: b, begun: begun, epoch: d.epoch, changes: d.changes}
	ctx, cancel := context.WithCancel(d.kernel.life)
	release := context.AfterFunc(b.sender.work(), cancel)
	d.kernel.background(func() {
		r.result, r.err = d.guarded(&b.calls[0], func() (kernel.Result, error) { return read(ctx) })
		release()
		cancel()
		root.Send(self, r)
	})
}

// haveRead gives a call its outcome. A call that was decided on a discarded state is decided again, and so is one that
// would wait although the state has changed since.
func (d *domain) haveRead(ctx actor.Context, r *reading) {
	b, call := r.batch, &r.batch.calls[0]
	_, system := errors.AsType[syscall.Errno](r.err)
	switch waits := r.result.Wait > 0; {
	case errors.Is(r.err, context.Canceled):
		b.sender.giveUp(ctx, d)
		return
	case d.rebuilding.held || r.epoch != d.epoch || waits && (r.changes != d.changes || b.sender.isOver()):
		d.queue = append(d.queue, b)
		return
	case system: // may be temporary
		d.log.Error("files of the journal cannot be read", "call", call, "error", r.err)
		d.fail(call, errNoState())
	case r.err != nil:
		d.fail(call, r.err)
	case waits && !call.Final:
		b.sender.park(ctx, d, r.result.Wait)
		return
	default:
		d.finish(ctx, call, &r.result)
	}
	call.Proof.LatencyUS += kernel.Microseconds(time.Since(r.begun))
	b.sender.charge(call)
	d.forward(ctx, b)
}

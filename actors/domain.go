package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// domain is the actor that owns a state machine: it alone calls Decide and Apply, one call at a time.
type domain struct {
	kernel *Kernel
	state  kernel.Domain
	log    *slog.Logger
}

// Receive runs the calls of a batch and sends it back.
func (d *domain) Receive(ctx actor.Context) {
	b, ok := ctx.Message().(*batch)
	if !ok {
		return
	}
	now := time.Now()
	var shutdown bool
	for i := range b.calls {
		call := &b.calls[i]
		call.Time = now.UnixMilli()
		shutdown = d.run(call) || shutdown
	}
	ctx.Send(b.replyTo, (*answers)(b))
	if shutdown {
		d.kernel.requestShutdown(nil)
	}
}

// run decides a call and applies it. A panic in Decide is that caller's failure alone, since Decide changed nothing; one
// in Apply is the actor's, and so the kernel's.
func (d *domain) run(call *kernel.Call) (shutdown bool) {
	result, err := d.decide(call)
	if err != nil {
		call.Err = schema.AsError(err)
		if call.Err.Class == schema.Internal {
			d.log.Error("syscall failed", "call", call, "error", err)
		}
		return false
	}
	call.Data = result.Data
	if call.Syscall.Kind == schema.Command {
		d.state.Apply(call)
	}
	return result.Shutdown
}

func (d *domain) decide(call *kernel.Call) (result kernel.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("syscall panicked", "call", call, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("decide %s: panic: %v", call.Message.Type, r)
		}
	}()
	return d.state.Decide(call)
}

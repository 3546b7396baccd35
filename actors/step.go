package actors

import (
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// step is a command of the kernel's own. It has no caller; its other fields say which actor is told.
type step struct {
	batch
	saga *saga      // the call that it is a step of
	from *actor.PID // the domain of that, which is told when the step has been applied
	note *actor.PID // the agent that wants to know when it is on disk
	ends *frames    // the intent whose outcome it is
	owed bool       // it must take effect, and is made again where its entry was lost
	due  bool       // it is, and the journal can be written again
}

// step makes a command of the kernel's own, with the call that it is for as its cause.
func (k *Kernel) step(cause *kernel.Call, request schema.Request) (*step, *fault.Fault) {
	s := new(step)
	s.sender = s
	cause.Begun = true
	return s, k.fill(&s.batch, cause, request)
}

// command sends a step to its domain.
func (k *Kernel) command(cause *kernel.Call, request schema.Request) *fault.Fault {
	s, err := k.step(cause, request)
	if err == nil {
		k.send(s)
	}
	return err
}

func (k *Kernel) send(s *step) { k.root.Send(k.domains[s.domain], &s.batch) }

// ready keeps what is owed while the journal cannot be written: to apply it would only have every state made anew. It refuses a step
// of a saga whose earlier steps were lost while it was held.
func (s *step) ready(ctx actor.Context, d *domain) bool {
	if s.saga != nil && s.saga.epoch != d.epoch {
		s.refuse(ctx, d, 0)
		return false
	}
	if s.owed && !s.due && d.kernel.refusing.Load() {
		ctx.Send(d.kernel.audit, owe{s})
		return false
	}
	return true
}

// admit asks no gate: a step is the kernel's own.
func (s *step) admit(d *domain, call *kernel.Call) kernel.Verdict {
	call.Tick = d.kernel.clock.now()
	return kernel.Verdict{}
}

func (s *step) decide(d *domain, call *kernel.Call) (kernel.Result, error) {
	return d.decide(call, false)
}

func (s *step) refuse(ctx actor.Context, d *domain, from int) {
	if !s.owed {
		s.batch.refuse(ctx, d, from)
		return
	}
	s.due = false
	ctx.Send(d.kernel.audit, owe{s})
}

func (s *step) answer(ctx actor.Context, a *audit) {
	if s.note != nil {
		ctx.Send(s.note, noted{s.calls[0].Tick, s.calls[0].Err})
	}
	if s.ends != nil {
		a.kernel.runs.ended(s)
	} else if list := s.effects(); list != nil {
		ctx.Send(a.kernel.agents, effects{list: list})
	}
}

// outcomeOf is the intent whose outcome b is, nil where it is none.
func (b *batch) outcomeOf() *frames {
	if s, ok := b.sender.(*step); ok {
		return s.ends
	}
	return nil
}

// owe keeps a command until the journal can be written.
type owe struct{ step *step }

// LogValue is that of the batch.
func (o owe) LogValue() slog.Value { return o.step.LogValue() }

// settle has what is owed made again, before any command of a client is let in: it may need what that gives back.
func (a *audit) settle(ctx actor.Context) {
	for _, s := range a.owed {
		s.due = true
		ctx.Send(a.kernel.domains[s.domain], &s.batch)
	}
	a.owed = nil
}

// stepCall is the call that a step is.
func stepCall(ids *ids, cause *kernel.Call, step schema.Request, row *schema.Syscall, data []byte) kernel.Call {
	return kernel.Call{
		Caller:  kernel.Caller{PID: kernel.Operator, Conn: cause.Caller.Conn},
		Syscall: row,
		Input:   step.Input,
		Origin:  cause.Origin,
		Urgent:  cause.Urgent,
		Holds:   cause.Holds,
		Time:    time.Now().UnixMilli(),
		Message: schema.Message{
			Kind: row.Kind, Type: row.Type, Data: data,
			Meta: schema.Metadata{
				Present: true, ID: ids.next(), Timestamp: time.Now().UnixMilli(),
				Correlation: cause.Message.Meta.Correlation, Causation: cause.Message.Meta.ID,
			},
		},
	}
}

// ids makes ids for the kernel's own messages. It is safe for concurrent use.
type ids struct {
	mu      sync.Mutex
	stamper *schema.Stamper
}

func (i *ids) next() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stamper == nil {
		i.stamper = schema.NewStamper()
	}
	return i.stamper.NewID()
}

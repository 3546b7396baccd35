package actors

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// Note journals a command of the kernel itself that no call caused. It does not wait: its entry precedes that of any later
// call. It may be called until Close. While the journal cannot be written the note is dropped: another failed write would
// make every domain rebuild its state.
func (k *Kernel) Note(step schema.Request) { k.noteOf(kernel.Operator, step) }

// noteOf is Note for an entry that belongs to the process pid.
func (k *Kernel) noteOf(pid int64, step schema.Request) {
	if k.refusing.Load() {
		k.log.Warn("note not journaled: the journal cannot be written", "type", step.Row.Type)
		return
	}
	s, err := k.step(&kernel.Call{Caller: kernel.Caller{Conn: "kernel"}, Origin: k.origin}, step)
	if err != nil {
		k.log.Error("note not journaled", "type", step.Row.Type, "error", err)
		return
	}
	if s.calls[0].PID = pid; pid != kernel.Operator {
		if p := k.processes.Process(pid); p != nil {
			s.calls[0].Origin = p.Origin
		}
	}
	k.send(s)
}

// Do makes one call as the operator and waits for its answer as any client does: a command's effect is then on disk and
// visible. It sees the stored data of origin; "" is the kernel's own origin. It returns the reply's data, which must not be
// changed, or the *fault.Fault that a client would get.
func (k *Kernel) Do(origin string, request schema.Request) ([]byte, error) {
	return k.DoUntil(context.Background(), origin, request)
}

// DoUntil is Do for a caller that disconnects when ctx ends: a call that still waits then fails.
func (k *Kernel) DoUntil(ctx context.Context, origin string, request schema.Request) ([]byte, error) {
	conn := "kernel-" + strconv.FormatUint(k.own.Add(1), 10)
	return k.callAndWait(ctx, kernel.Caller{PID: kernel.Operator, Conn: conn, Origin: origin}, request, nil)
}

// DoOwn is Do for a command of the kernel itself, which no client can name. cause and correlation are ids for its metadata.
func (k *Kernel) DoOwn(request schema.Request, cause, correlation string) ([]byte, error) {
	data, _, err := k.Proved("", request, cause, correlation)
	return data, err
}

// Proved is DoOwn in an origin ("": the kernel's own), and also returns the seq of the command's entry.
func (k *Kernel) Proved(origin string, request schema.Request, cause, correlation string) (data []byte, seq uint64, err error) {
	conn := "kernel-" + strconv.FormatUint(k.own.Add(1), 10)
	call, err := callOf(kernel.Caller{PID: kernel.Operator, Conn: conn, Origin: origin, Kernel: true}, request)
	if err != nil {
		return nil, 0, err
	}
	call.Message.Meta.Causation, call.Message.Meta.Correlation = cause, correlation
	a := k.answer(context.Background(), call, nil)
	return a.data, a.seq, a.err
}

// Recorded returns the last entry of what all domains had published when it was called. All entries up to it are on disk.
func (k *Kernel) Recorded(ctx context.Context) (uint64, error) {
	now, err := k.look(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := k.auditor.journal.Sync(); err != nil {
		return 0, record.Unavailable()
	}
	return now.Head, nil
}

// Act makes a call of the kernel itself for the process pid, and runs run for its effect when the intent is on disk. The
// effect does not count towards pid's effects: the caller limits their number. The end of ctx ends run. Act returns the
// call's answer, after run has returned.
func (k *Kernel) Act(ctx context.Context, pid int64, request schema.Request, run kernel.Runner) ([]byte, error) {
	conn := "net-" + strconv.FormatUint(k.own.Add(1), 10)
	own := &ownRun{run: run, done: make(chan struct{})}
	defer own.wait()
	return k.callAndWait(ctx, kernel.Caller{PID: pid, Conn: conn, Kernel: true, Via: "channel"}, request, own)
}

// DoFor makes a command of the kernel itself for a caller, through the gate, as Act does for an effect. The name of the
// connection must be unique.
func (k *Kernel) DoFor(ctx context.Context, caller kernel.Caller, request schema.Request, cause, correlation string) ([]byte, error) {
	caller.Kernel = true
	call, err := callOf(caller, request)
	if err != nil {
		return nil, err
	}
	call.Message.Meta.Causation, call.Message.Meta.Correlation = cause, correlation
	return k.make(ctx, call, nil)
}

// Call makes a call for a caller as its own connections do: through the gate, and journaled in the same way. The name of
// the connection must be unique. It returns as Do does. When ctx ends, the caller disconnects.
func (k *Kernel) Call(ctx context.Context, caller kernel.Caller, message schema.Message) ([]byte, error) {
	return k.make(ctx, &kernel.Call{Caller: caller, Message: message}, nil)
}

// CallProved is Call, and also returns the seq of the call's entry.
func (k *Kernel) CallProved(ctx context.Context, caller kernel.Caller, message schema.Message) (data []byte, seq uint64, err error) {
	a := k.answer(ctx, &kernel.Call{Caller: caller, Message: message}, nil)
	return a.data, a.seq, a.err
}

// callAndWait makes one call of the kernel itself and waits for its answer.
func (k *Kernel) callAndWait(ctx context.Context, caller kernel.Caller, request schema.Request, run *ownRun) ([]byte, error) {
	call, err := callOf(caller, request)
	if err != nil {
		return nil, err
	}
	return k.make(ctx, call, run)
}

// callOf returns the call of a request. It encodes the data for the journal.
func callOf(caller kernel.Caller, request schema.Request) (*kernel.Call, error) {
	row := request.Row
	data, err := schema.Marshal(request.Input)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", row.Type, err)
	}
	return &kernel.Call{Caller: caller, Message: schema.Message{Kind: row.Kind, Type: row.Type, Data: data}}, nil
}

// make makes a call, whose message gets an id.
func (k *Kernel) make(ctx context.Context, made *kernel.Call, run *ownRun) ([]byte, error) {
	a := k.answer(ctx, made, run)
	return a.data, a.err
}

// answer is make with the whole answer.
func (k *Kernel) answer(ctx context.Context, made *kernel.Call, run *ownRun) ownAnswer {
	call, caller := *made, made.Caller
	call.Message.Meta.Present, call.Message.Meta.ID, call.Message.Meta.Timestamp = true, k.ids.next(), time.Now().UnixMilli()
	k.read(&call)
	if k.readReferences(&call); call.Err != nil {
		return ownAnswer{err: call.Err}
	}
	share := k.accounts.open(caller.PID)
	defer share.close()
	if !share.take(ctx, 0) {
		return ownAnswer{err: errHungUp}
	}
	waits, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	f := newFrames()
	f.domain, f.alone, f.account, f.ctx, f.run = way(&call), runsAlone(&call), share, waits, run
	f.calls = append(f.calls, call)
	domain := k.domains[f.domain]
	own := &ownCall{kernel: k, domain: domain, typ: call.Message.Type, answer: make(chan ownAnswer, 1)}
	f.replyTo = k.spawn("connection/"+caller.Conn, own)
	k.root.Send(domain, &f.batch)
	select {
	case a := <-own.answer:
		return a
	case <-ctx.Done():
	}
	giveUp(errHungUp)
	k.root.Send(domain, hangUp{caller.Conn})
	return <-own.answer
}

// ownCall is the actor that receives the answer to a call of the kernel itself.
type ownCall struct {
	kernel *Kernel
	domain *actor.PID
	typ    string
	answer chan ownAnswer // buffered: one answer
	done   bool
}

type ownAnswer struct {
	data []byte
	seq  uint64 // of its entry; 0: none
	err  error
}

// Receive handles the answer, or the death of an actor that should send it.
func (o *ownCall) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Watch(o.domain)
		ctx.Watch(o.kernel.audit)
	case *batch:
		o.answered(ctx, m)
	case *actor.Terminated: // the batch may still be in flight, and is not reused
		o.reply(ctx, ownAnswer{err: errInterrupted(o.typ)})
	case *actor.Stopped:
		ctx.Unwatch(o.domain)
		ctx.Unwatch(o.kernel.audit)
	}
}

func (o *ownCall) answered(ctx actor.Context, b *batch) {
	call := &b.calls[0]
	if l := call.Lasting; l != nil && l.End != nil && call.Err == nil {
		o.kernel.conclude(call, *l.End) // its connection ends here
	}
	if call.Err != nil {
		o.reply(ctx, ownAnswer{err: call.Err})
	} else {
		o.reply(ctx, ownAnswer{data: call.Data, seq: call.Proof.Seq})
	}
	b.sender.(*frames).recycle()
}

func (o *ownCall) reply(ctx actor.Context, a ownAnswer) {
	if !o.done {
		o.done = true
		o.answer <- a
		ctx.Stop(ctx.Self())
	}
}

// Tick returns the kernel's present tick.
func (k *Kernel) Tick() int64 {
	k.clock.advance()
	return k.clock.now()
}

// ownRun is the effect of an Act. A kernel that fails may answer before the effect has ended.
type ownRun struct {
	run  kernel.Runner
	mu   sync.Mutex
	over bool // the call was answered: the effect must not start
	busy bool
	done chan struct{}
}

func (o *ownRun) do(ctx context.Context, job *kernel.Job) ([]byte, error) {
	o.mu.Lock()
	if o.over {
		o.mu.Unlock()
		return nil, errHungUp
	}
	o.busy = true
	o.mu.Unlock()
	defer close(o.done)
	return o.run(ctx, job)
}

// wait waits until the effect has ended, or cannot start any more.
func (o *ownRun) wait() {
	o.mu.Lock()
	o.over = true
	busy := o.busy
	o.mu.Unlock()
	if busy {
		<-o.done
	}
}

package actors

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Do makes a call of the kernel itself and waits for its answer as any client does: a command's effect is then on disk and
// visible. It returns the *fault.Fault that a client would get. When ctx ends, the caller disconnects: a call that still
// waits fails, and its effect, if Run runs it, is cancelled. Do returns after Run has, which does not count towards the
// caller's effects: who passes it limits their number.
func (k *Kernel) Do(ctx context.Context, own kernel.Own) (kernel.Answer, error) {
	call, err := k.ownCall(&own)
	if err != nil {
		return kernel.Answer{}, err
	}
	if own.Run == nil {
		return k.answer(ctx, call, nil, own.Waits)
	}
	run := &ownRun{run: own.Run, done: make(chan struct{})}
	defer run.wait()
	return k.answer(ctx, call, run.do, own.Waits)
}

// ownCall returns the call of own, with its data encoded for the journal and a name for its connection.
func (k *Kernel) ownCall(own *kernel.Own) (*kernel.Call, error) {
	call := kernel.NewCall(kernel.Request{Caller: own.Caller, Message: own.Message}, kernel.Undecided)
	call.Approval = own.Approval
	if row := own.Request.Row; row != nil {
		data, err := schema.Marshal(own.Request.Input)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", row.Type, err)
		}
		call.Message = schema.Message{Kind: row.Kind, Type: row.Type, Data: data}
		call.Message.Meta.Causation, call.Message.Meta.Correlation = own.Causation, own.Correlation
	}
	if call.Caller.Conn == "" {
		name := "kernel-"
		if own.Run != nil {
			name = "net-" // rules on past calls know the door of a connection by its name
		}
		call.Caller.Conn = name + strconv.FormatUint(k.own.Add(1), 10)
	}
	return &call, nil
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

// answer makes a call, whose message gets an id.
func (k *Kernel) answer(ctx context.Context, made *kernel.Call, run kernel.Runner, waits func()) (kernel.Answer, error) {
	call, caller := *made, made.Caller
	call.Message.Meta.Present, call.Message.Meta.ID, call.Message.Meta.Timestamp = true, k.ids.next(), time.Now().UnixMilli()
	k.read(&call)
	if k.readReferences(&call); call.Err != nil {
		return kernel.Answer{}, call.Err
	}
	share := k.accounts.open(caller.PID)
	defer share.close()
	if !share.take(ctx, 0) {
		return kernel.Answer{}, errHungUp
	}
	ends, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	f := newFrames()
	f.domain, f.alone, f.account, f.ctx, f.run, f.waits = way(&call), runsAlone(&call), share, ends, run, waits
	f.calls = append(f.calls, call)
	domain := k.domains[f.domain]
	own := &ownConnection{kernel: k, domain: domain, typ: call.Message.Type, answer: make(chan ownAnswer, 1)}
	f.replyTo = k.spawn("connection/"+caller.Conn, own)
	k.root.Send(domain, &f.batch)
	select {
	case a := <-own.answer:
		return a.Answer, a.err
	case <-ctx.Done():
	}
	giveUp(errHungUp)
	k.root.Send(domain, hangUp{caller.Conn})
	a := <-own.answer
	return a.Answer, a.err
}

// ownConnection is the actor that receives the answer to a call of the kernel itself.
type ownConnection struct {
	kernel *Kernel
	domain *actor.PID
	typ    string
	answer chan ownAnswer // buffered: one answer
	done   bool
}

type ownAnswer struct {
	kernel.Answer
	err error
}

// Receive handles the answer, or the death of an actor that should send it.
func (o *ownConnection) Receive(ctx actor.Context) {
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

func (o *ownConnection) answered(ctx actor.Context, b *batch) {
	call := &b.calls[0]
	if l := call.Lasting; l != nil && l.End != nil && call.Err == nil {
		o.kernel.conclude(call.AsCause(), *l.End) // its connection ends here
	}
	if data, failure := call.Answered(); failure != nil {
		o.reply(ctx, ownAnswer{err: failure})
	} else {
		o.reply(ctx, ownAnswer{Answer: kernel.Answer{Data: data, Seq: call.Proof.Seq}})
	}
	b.sender.(*frames).recycle()
}

func (o *ownConnection) reply(ctx actor.Context, a ownAnswer) {
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

// ownRun is the effect of an own call. A kernel that fails may answer before the effect has ended.
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

// Vouch journals with a command that a line of the journal is rewritten, and returns the entry, which is on disk. lost reports whether it
// may be on disk despite an error.
func (k *Kernel) Vouch(by schema.Request) (seq uint64, lost bool, err error) {
	answer, err := k.Do(context.Background(), kernel.Own{Caller: kernel.Caller{Kernel: true}, Request: by})
	return answer.Seq, errors.Is(err, fault.JournalLost), err
}

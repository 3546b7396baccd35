package actors

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Note journals one of the kernel's own commands, which no call is the cause of. It does not wait: the entry stands
// before that of any call which is made later. It may be called until Close. While the journal cannot be written it is
// dropped: a write that fails with it would have every domain make its state anew, as often as somebody gives cause for a
// note.
func (k *Kernel) Note(step schema.Request) { k.noteOf(kernel.Operator, step) }

// noteOf is Note for an entry that is shown as one of the process pid.
func (k *Kernel) noteOf(pid int64, step schema.Request) {
	if k.refusing.Load() {
		k.log.Warn("note not journaled: the journal cannot be written", "type", step.Row.Type)
		return
	}
	b, err := k.stepBatch(nil, &kernel.Call{Caller: kernel.Caller{Conn: "kernel"}, Origin: k.origin}, step)
	if err != nil {
		k.log.Error("note not journaled", "type", step.Row.Type, "error", err)
		return
	}
	if b.calls[0].PID = pid; pid != kernel.Operator {
		if p := k.processes.Process(pid); p != nil {
			b.calls[0].Origin = p.Origin
		}
	}
	k.root.Send(k.domains[b.domain], b)
}

// Do makes one call as the operator, whose stored things are those of origin (empty: the kernel's own), and waits for
// its answer as any client does: a command's effect is on disk by then, and others see it. It returns the reply's data,
// or the *schema.Error that a client would get.
func (k *Kernel) Do(origin, typ string, input any) ([]byte, error) {
	return k.DoUntil(context.Background(), origin, typ, input)
}

// DoUntil is Do for who hangs up when ctx ends: a call that still waits then is answered with an error.
func (k *Kernel) DoUntil(ctx context.Context, origin, typ string, input any) ([]byte, error) {
	conn := "kernel-" + strconv.FormatUint(k.own.Add(1), 10)
	return k.ask(ctx, kernel.Caller{PID: kernel.Operator, Conn: conn, Origin: origin}, typ, input)
}

// Act makes a call of the kernel's own in the name of pid, and has run do its effect once the intent is on disk. The effect
// does not count among pid's effects: the caller of Act bounds how many there are. When ctx ends, so does that of run. Act
// returns what the call was answered, after run has returned.
func (k *Kernel) Act(ctx context.Context, pid int64, typ string, input any, run Runner) ([]byte, error) {
	conn := "net-" + strconv.FormatUint(k.own.Add(1), 10)
	own := &ownRun{run: run, done: make(chan struct{})}
	k.runs.own.Store(conn, own)
	defer k.runs.own.Delete(conn)
	data, err := k.ask(ctx, kernel.Caller{PID: pid, Conn: conn, Kernel: true}, typ, input)
	own.wait()
	return data, err
}

// ask makes one call and waits for its answer.
func (k *Kernel) ask(ctx context.Context, caller kernel.Caller, typ string, input any) ([]byte, error) {
	row, ok := schema.Lookup(typ)
	if !ok {
		return nil, fmt.Errorf("make call: no syscall is named %s", typ)
	}
	data, err := schema.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("make call: %w", err)
	}
	line := schema.AppendMessage(nil, &schema.Message{
		Kind: row.Kind, Type: row.Type, Data: data,
		Meta: schema.Metadata{Present: true, ID: k.ids.next(), Timestamp: time.Now().UnixMilli()},
	})
	link := newOwnLink(line, ctx.Done())
	k.Serve(link, caller)
	return link.answer()
}

// Tick is the kernel's present tick.
func (k *Kernel) Tick() int64 { return k.clock.now() }

// ownRun is the effect of an Act. A kernel that fails may answer before it has ended.
type ownRun struct {
	run  Runner
	mu   sync.Mutex
	over bool // nobody waits any more: it must not begin
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

// wait returns once the effect has ended, or can no longer begin.
func (o *ownRun) wait() {
	o.mu.Lock()
	o.over = true
	busy := o.busy
	o.mu.Unlock()
	if busy {
		<-o.done
	}
}

// ownLink is a link whose other end has said one line, and keeps what comes back. Serve's goroutine reads it after the
// last write, so nothing guards it.
type ownLink struct {
	in   *schema.LineReader
	out  bytes.Buffer
	once sync.Once
	quit chan struct{}   // closed by the first Interrupt
	over <-chan struct{} // closed when nobody waits for the answer; nil: somebody does
}

var _ Link = (*ownLink)(nil)

func newOwnLink(line []byte, over <-chan struct{}) *ownLink {
	return &ownLink{in: schema.NewLineReader(bytes.NewReader(line), len(line)), quit: make(chan struct{}), over: over}
}

// Next and the rest implement Link.
func (l *ownLink) Next() ([]byte, error)          { return l.in.Next() }
func (l *ownLink) TryNext() ([]byte, bool, error) { return nil, false, nil }
func (l *ownLink) TryWrite(p []byte) (int, error) { return l.out.Write(p) }
func (l *ownLink) Write(p []byte) (int, error)    { return l.out.Write(p) }
func (l *ownLink) Dialect() schema.Dialect        { return schema.OsMessage }
func (l *ownLink) LineLimit() int                 { return schema.MaxLine }
func (l *ownLink) Interrupt()                     { l.once.Do(func() { close(l.quit) }) }
func (l *ownLink) Close() error                   { return nil }

// AwaitHangup returns when the connection has nothing more to say, or its other end has hung up.
func (l *ownLink) AwaitHangup() {
	select {
	case <-l.quit:
	case <-l.over:
	}
}

// answer is the one that came.
func (l *ownLink) answer() ([]byte, error) {
	m, fault := schema.Decode(bytes.TrimSpace(l.out.Bytes()), schema.OsMessage)
	switch {
	case fault != nil:
		return nil, schema.Errorf(schema.Internal, "the kernel did not answer its own call")
	case m.Kind == schema.KindError:
		refused, fault := schema.DecodeErrorData(m.Data)
		if fault != nil {
			return nil, fault
		}
		return nil, refused
	}
	return m.Data, nil
}

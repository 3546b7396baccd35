package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxAnswer bounds an answer to a query in bytes, so that it fits a message of the bus.
const maxAnswer = 900_000

// maxOrigin bounds the identifier of another kernel's state directory, in bytes.
const maxOrigin = 64

// flight is a call for another kernel that is in flight.
type flight struct {
	done chan struct{} // closed when there is an outcome
	data []byte
	err  error
}

// call executes the call in a request, and puts the reply's data or the error into the answer.
func (r *receiver) call(ctx context.Context, from *Requester, req *request, out *answer) {
	var err error
	switch {
	case req.Errand != nil && req.Query == nil:
		var data []byte
		data, err = r.run(ctx, from, req)
		out.Data = data
	case req.Query != nil && req.Errand == nil:
		out.Data, out.Seq, err = r.query(ctx, from, req.Query)
	default:
		err = fault.ClusterRequest.New("a call is an errand or a query")
	}
	if err != nil {
		out.Data, out.Failed = nil, failureOf(fault.Of(err))
	}
}

// run executes a call that changes something. A request that repeats a call in flight returns its outcome.
func (r *receiver) run(ctx context.Context, from *Requester, req *request) ([]byte, error) {
	if strings.Contains(req.Instance, "/") || len(req.Instance) > maxOrigin || (req.Errand.Spawn == nil) == (req.Errand.Terminate == nil) {
		return nil, fault.ClusterRequest.New("the call of %s does not have its form", req.From)
	}
	id := fmt.Sprintf("%s/%s/%d/%d", req.From, req.Instance, req.Epoch, req.Errand.Number)
	r.mu.Lock()
	f := r.flights[id]
	first := f == nil
	if first {
		f = &flight{done: make(chan struct{})}
		r.flights[id] = f
	}
	r.mu.Unlock()
	if first {
		f.data, f.err = r.kernel.Run(ctx, from, req.Instance, req.Epoch, req.Errand)
		r.mu.Lock()
		delete(r.flights, id)
		r.mu.Unlock()
		close(f.done)
		return f.data, f.err // also if ctx has ended: that it waits for an approval is an outcome
	}
	select {
	case <-f.done:
		return f.data, f.err
	case <-ctx.Done():
		return nil, fault.CallTimeout.New("the call %d of %s is in flight", req.Errand.Number, req.From)
	}
}

// query executes a call that only reads, if it is one that other kernels may make.
func (r *receiver) query(ctx context.Context, from *Requester, q *query) (schema.Value, int64, error) {
	if !asked(q.Type) {
		return nil, 0, fault.ClusterNotAsked.New("%s is no query that a kernel answers to others", fault.Clip(q.Type))
	}
	data, seq, err := r.kernel.Ask(ctx, from, q.Type, q.Data)
	if most := min(maxAnswer, r.Room()); err == nil && len(data) > most {
		err = fault.ClusterTooLarge.New("the answer to %s has %d bytes; to another kernel it may have %d", q.Type, len(data), most)
	}
	return data, int64(seq), err
}

func asked(typ string) bool {
	for _, row := range schema.Asked() {
		if row.Type == typ {
			return true
		}
	}
	return false
}

// calls returns the session for calls to a kernel.
func (l *Link) calls(kernel string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.lines[kernel]
	if one == nil {
		one = &line{Link: l, to: kernel, stream: callStream}
		l.lines[kernel] = one
	}
	return one
}

// Ask makes a query at another kernel. It returns the answer, and the query's entry in the journal there.
func (l *Link) Ask(ctx context.Context, kernel, typ string, data []byte) (schema.Value, int64, error) {
	if why := l.Reach(kernel); why != nil {
		return nil, 0, why
	}
	if l.kernel == nil {
		return nil, 0, fault.ClusterOff.New("a kernel for one call asks no other kernel")
	}
	if !asked(typ) {
		return nil, 0, fault.ClusterNotAsked.New("%s is no query that a kernel answers to others", fault.Clip(typ))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	reply, _, err := l.calls(kernel).request(ctx, &request{Query: &query{typ, data}})
	switch {
	case errors.Is(err, errAway):
		return nil, 0, fault.ClusterKernelAway.New("%v", err)
	case err != nil:
		return nil, 0, err
	case reply.Error != nil:
		f := reply.Error.fault()
		l.refuse(kernel, true, f)
		return nil, 0, f
	case reply.Failed != nil:
		return nil, 0, reply.Failed.faultOf(kernel)
	}
	row, _ := schema.Lookup(typ)
	if _, invalid := row.Output().Decode(reply.Data); invalid != nil {
		f := fault.ClusterRequest.New("the answer of %s to %s does not have its form: %s", kernel, typ, invalid.Message)
		l.refuse(kernel, true, f)
		return nil, 0, f
	}
	return reply.Data, reply.Seq, nil
}

// errand is a call for another kernel without outcome.
type errand struct {
	*schema.Errand
	tried  bool               // the other kernel may have it
	waited bool               // a call waits for the outcome, on done
	done   chan errandOutcome // buffered: one outcome
	intent uint64             // if no call waits: the entry that it is the outcome of
}

type errandOutcome struct {
	data []byte
	err  *fault.Fault
}

// Begin starts to send a call for another kernel. The call must be on disk. Begin does not block.
func (l *Link) Begin(e *schema.Errand) {
	one := &errand{Errand: e, waited: true, done: make(chan errandOutcome, 1)}
	l.mu.Lock()
	l.errands[e.Number] = one
	l.mu.Unlock()
	l.background(func() { l.do(one) })
}

// resume sends a call of the previous run again. If the other kernel has already made it, the answer is its outcome.
func (l *Link) resume(e *schema.Errand, intent uint64) {
	if intent == 0 { // its outcome is in the journal
		l.kernel.Note(schema.ProcessSettle.With(&schema.ErrandSettled{Number: e.Number, Kernel: e.Kernel}))
		return
	}
	one := &errand{Errand: e, tried: true, intent: intent}
	l.background(func() { l.do(one) })
}

// errandPatience is how long a call waits for its outcome at another kernel.
const errandPatience = 30 * time.Second

// Outcome waits up to errandPatience for the outcome of a call that was given to Begin. If finished is false, there is none
// yet, and the link journals it as the outcome of the intent later.
func (l *Link) Outcome(ctx context.Context, number int64, intent uint64) (data []byte, err error, finished bool) {
	l.mu.Lock()
	one := l.errands[number]
	delete(l.errands, number)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, errandPatience)
	defer cancel()
	select {
	case o := <-one.done:
		return o.result()
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case o := <-one.done: // it arrived at the same time
		return o.result()
	default:
		one.waited, one.intent = false, intent
		return nil, nil, false
	}
}

func (o errandOutcome) result() ([]byte, error, bool) {
	if o.err != nil {
		return nil, o.err, true
	}
	return o.data, nil, true
}

// Settled records that the journal has the outcome of a call.
func (l *Link) Settled(e *schema.Errand) {
	l.kernel.Note(schema.ProcessSettle.With(&schema.ErrandSettled{Number: e.Number, Kernel: e.Kernel}))
}

// do sends a call to the other kernel until there is an outcome, or the link ends.
func (l *Link) do(one *errand) {
	var pause time.Duration
	for l.ctx.Err() == nil {
		data, failed, known := l.try(one)
		if known {
			l.conclude(one, data, failed)
			return
		}
		pause = longer(pause)
		sleep(l.ctx, pause)
	}
}

// open opens the variables of a program, which the other kernel seals with its own key.
func (l *Link) open(wire *schema.Errand) error {
	if wire.Spawn == nil || len(wire.Spawn.Env) == 0 {
		return nil
	}
	spawn := *wire.Spawn
	var err error
	if spawn.Env, err = l.kernel.OpenVariables(spawn.Env); err != nil {
		return err
	}
	wire.Spawn = &spawn
	return nil
}

// try makes one request. known says whether there is an outcome.
func (l *Link) try(one *errand) (data []byte, failed *fault.Fault, known bool) {
	wire := *one.Errand
	if s := wire.Spawn; s != nil && s.Capabilities != nil && s.Capabilities.ExpiresAtTick != nil {
		spawn, grant := *s, *s.Capabilities
		left := *grant.ExpiresAtTick - l.kernel.Tick()
		grant.ExpiresAtTick, wire.TicksLeft = nil, &left
		spawn.Capabilities, wire.Spawn = &grant, &spawn
	}
	if err := l.open(&wire); err != nil {
		return nil, fault.Of(err), !one.tried
	}
	reply, sent, err := l.calls(one.Kernel).request(l.ctx, &request{Errand: &wire})
	one.tried = one.tried || sent
	switch {
	case l.ctx.Err() != nil:
		return nil, nil, false
	case err != nil && one.tried: // the other kernel may have made it
		return nil, nil, false
	case err != nil:
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.ID != fault.ClusterBus {
			return nil, f, true
		}
		return nil, fault.ClusterKernelAway.New("%v: nothing was done", err), true
	case reply.Error != nil:
		failed = reply.Error.fault()
		l.refuse(one.Kernel, true, failed)
		return nil, failed, !one.tried && verdictOf(failed) == nothingDone
	case reply.Failed != nil:
		failed = reply.Failed.faultOf(one.Kernel)
		return nil, failed, verdictOf(failed) != unknown
	}
	data, err = one.outcome(reply.Data)
	if err != nil {
		failed = fault.ClusterRequest.New("the answer of %s to %s does not have its form: %v", one.Kernel, one.Type(), err)
		l.refuse(one.Kernel, true, failed)
		return nil, nil, false
	}
	return data, nil, true
}

// outcome converts the answer of the other kernel to the answer of the call here.
func (e *errand) outcome(data []byte) ([]byte, error) {
	if e.Spawn != nil {
		out, err := schema.SyscallSpawn.Decode(data)
		if err != nil {
			return nil, err
		}
		out.Kernel = e.Kernel
		return schema.Marshal(out)
	}
	out, err := schema.SyscallTerminate.Decode(data)
	if err != nil {
		return nil, err
	}
	out.Kernel = e.Kernel
	return schema.Marshal(out)
}

// conclude passes the outcome to the call that waits for it, or journals it.
func (l *Link) conclude(one *errand, data []byte, failed *fault.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.waited {
		one.done <- errandOutcome{data, failed}
		return
	}
	l.kernel.EndIntent(one.intent, data, failed)
	l.Settled(one.Errand)
}

package actors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// providerTime is how long a connection has to answer a call of a syscall that it provides.
const providerTime = 30 * time.Second

// providers are the connections that provide registered syscalls, and the calls that wait for them. It is safe for concurrent use.
type providers struct {
	time time.Duration
	ids  *ids

	mu    sync.Mutex
	by    map[registered]*connection
	calls map[string]*provided
}

// registered names a registered syscall.
type registered struct{ origin, name string }

// provided is a call that waits for its provider.
type provided struct {
	by     *connection
	from   string              // the connection that makes it
	causes []*provided         // what it may be made for: calls that from has been asked to carry out
	over   bool                // it has its answer
	answer chan schema.Outcome // takes one
}

// waits reports whether a connection waits for the call: it makes the call, or one that the call may be made for, or carries that out.
func (call *provided) waits(conn string, seen map[*provided]bool) bool {
	seen[call] = true
	return call.from == conn || slices.ContainsFunc(call.causes, func(cause *provided) bool {
		return !cause.over && !seen[cause] && (cause.by.caller.Conn == conn || cause.waits(conn, seen))
	})
}

func newProviders(limit time.Duration, ids *ids) *providers {
	return &providers{time: limit, ids: ids, by: make(map[registered]*connection), calls: make(map[string]*provided)}
}

// requested has a connection asked to carry out a call, or told that nobody waits for it.
type requested struct {
	callID string
	event  kernel.Event
}

// bind makes a connection the provider of a syscall, in the place of another.
func (p *providers) bind(origin, name string, c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by[registered{origin, name}] = c
}

// unbind ends what a connection provides. Callers that wait for it are told.
func (p *providers) unbind(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one, by := range p.by {
		if by == c {
			delete(p.by, one)
		}
	}
	for id, call := range p.calls {
		if call.by == c {
			p.answer(id, call, schema.Outcome{Err: fault.ProviderDied.New("the provider's connection ended before it answered: the call may or may not have had effects")})
		}
	}
}

// answer gives a call its one outcome. p is locked.
func (p *providers) answer(id string, call *provided, o schema.Outcome) {
	delete(p.calls, id)
	call.over = true
	call.answer <- o
}

// Run is the runner of calls that a connection provides.
func (p *providers) Run(ctx context.Context, job *kernel.Job) ([]byte, error) {
	do := job.Do.(*kernel.Invocation)
	id, call, err := p.begin(job, do)
	if err != nil {
		return nil, err
	}
	request := &schema.RequestedEvent{CallID: id, Type: do.Name, Data: do.Data, PID: job.PID}
	if schema.UserSpace(do.Name) {
		request.Digest = do.Digest()
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask provider: %w", err)
	}
	call.by.tell(&requested{id, kernel.Event{Type: schema.SyscallRequested, Data: data, Causation: job.ID}})
	late := time.NewTimer(p.time)
	defer late.Stop()
	var why *fault.Fault
	select {
	case o := <-call.answer:
		return answerOf(o)
	case <-late.C:
		why = fault.ProviderTimeout.New("%s was not answered by its provider in %v: it may or may not have had effects", do.Name, p.time)
	case <-ctx.Done():
		why = fault.CallCancelled.New("%s was given up", do.Name)
	}
	p.end(id, call, why)
	if data, err = schema.Marshal(&schema.CancelledEvent{CallID: id}); err != nil {
		return nil, fmt.Errorf("tell provider: %w", err)
	}
	call.by.tell(&requested{id, kernel.Event{Type: schema.SyscallCancelled, Data: data, Causation: job.ID}})
	return answerOf(<-call.answer) // it may have been answered meanwhile
}

// answerOf is an outcome as a runner returns it.
func answerOf(o schema.Outcome) ([]byte, error) {
	if o.Err != nil {
		return nil, o.Err
	}
	return o.Data, nil
}

// begin notes a call that waits for the provider of its syscall.
func (p *providers) begin(job *kernel.Job, do *kernel.Invocation) (string, *provided, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := do.Name
	if entry, ok := schema.MCPEntry(name); ok {
		name = entry // who provides it provides all below it
	}
	c := p.by[registered{do.Origin, name}]
	if c == nil {
		return "", nil, fault.ProviderAway.New("the provider of %s is away: nothing was done", do.Name)
	}
	id, call := p.ids.next(), &provided{by: c, from: job.Conn, causes: p.causes(job), answer: make(chan schema.Outcome, 1)}
	if call.waits(c.caller.Conn, make(map[*provided]bool)) {
		return "", nil, fault.ProviderItself.New("%s would wait for itself: its provider waits for this call", do.Name)
	}
	p.calls[id] = call
	return id, call, nil
}

// causes are the calls that one may be made for: the one whose call_id it names as its causation; where it names nothing, all that
// its connection has been asked to carry out. p is locked.
func (p *providers) causes(job *kernel.Job) (calls []*provided) {
	if job.Cause != "" {
		if call := p.calls[job.Cause]; call != nil {
			calls = append(calls, call)
		}
		return calls
	}
	for _, call := range p.calls {
		if call.by.caller.Conn == job.Conn {
			calls = append(calls, call)
		}
	}
	return calls
}

// end gives up a call, unless it has been answered.
func (p *providers) end(id string, call *provided, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] == call {
		p.answer(id, call, schema.Outcome{Err: why})
	}
}

// refuse ends a call that its provider cannot be asked.
func (p *providers) refuse(id string, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call := p.calls[id]; call != nil {
		p.answer(id, call, schema.Outcome{Err: why})
	}
}

// complete answers a call for its provider. It returns what is wrong with that.
func (p *providers) complete(c *connection, in *schema.CompleteInput) *fault.Fault {
	o := schema.Outcome{Data: in.Data}
	switch {
	case (in.Data == nil) == (in.Error == nil):
		return kernel.Invalid("data", "or error is required, and one of the two is given")
	case in.Error != nil:
		said, id := in.Error.Message, fault.ProviderFailed
		switch code := in.Error.Code; {
		case code != nil && *code == int64(fault.Unavailable.Status()):
			id = fault.ProviderAway
		case code != nil:
			said = fmt.Sprintf("%s (%d)", said, *code)
		}
		o.Err = id.New("the provider says: %s", said)
	case !schema.ValidWithin(in.Data, schema.MaxKeptDepth):
		return kernel.Invalid("data", "must not be nested deeper than %d levels", schema.MaxKeptDepth)
	default:
		o.Data = append([]byte(nil), in.Data...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[in.CallID]
	if call == nil || call.by != c {
		return fault.ProviderNoCall.New("no call %q waits for this connection: it was answered, has ended, or is another's", fault.Clip(in.CallID)).With("call_id", in.CallID)
	}
	p.answer(in.CallID, call, o)
	return nil
}

// complete carries out a Syscall.Complete, which does not wait behind frames of its connection: what these wait for may be its
// caller. Its frame goes its way for the record. It is for any goroutine.
func (c *connection) complete(call *kernel.Call) {
	if in, ok := call.Input.(*schema.CompleteInput); ok && call.Err == nil {
		call.Refused = c.kernel.providers.complete(c, in)
		call.Parked = call.Refused == nil // no bound refuses what has happened
	}
}

// registered makes the connection the provider of a syscall whose registration is answered.
func (c *connection) registered(call *kernel.Call) {
	in := call.Input.(*schema.RegisterInput)
	if in.Provider == nil || schema.UserSpace(in.Name) && call.PID == kernel.Operator { // who registers a path for another
		return
	}
	c.provides = true
	c.asked = call.Message.Dialect
	c.kernel.providers.bind(call.Origin, in.Name, c)
}

// requested pushes a Syscall.Requested, where the peer reads and a line has room.
func (c *connection) requested(r *requested) {
	const envelope, escaped = 512, 6 // bytes: of what else a line has; at most, of one of an id
	is := c.kernel.processes.Process(c.caller.PID)
	switch {
	case c.writer.full || c.gone:
		c.kernel.providers.refuse(r.callID, fault.ProviderAway.New("the provider's connection reads nothing: nothing was done"))
	case is != nil && is.State == "TERMINATED":
		c.kernel.providers.refuse(r.callID, fault.ProviderAway.New("the provider, pid %d, has ended: nothing was done", is.PID))
	case len(r.event.Data)+escaped*len(r.event.Causation)+envelope > c.link.LineLimit():
		c.kernel.providers.refuse(r.callID, fault.WireTooLong.New("the call is longer than a line of its provider's connection: nothing was done"))
	default:
		subscribed := &subscription{following: &following{call: kernel.Call{Message: schema.Message{Dialect: c.asked}}}}
		c.push(subscribed, schema.Proof{}, []kernel.Event{r.event})
	}
}

// changed has the connection take on what an answered call makes of it.
func (c *connection) changed(call *kernel.Call) {
	switch {
	case call.Err != nil || call.Syscall == nil:
	case call.Syscall == schema.ProcessAttach.Row():
		c.attached(call)
	case call.Syscall == schema.SyscallRegister.Row():
		c.registered(call)
	}
}

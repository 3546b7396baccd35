// Package provide has registered syscalls carried out by the connections that provide them.
package provide

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Provider is a connection that can provide syscalls.
type Provider interface {
	// Name is that of the connection, as in a caller's Conn.
	Name() string
	// Over reports whether the connection has ended.
	Over() bool
	// Request has the connection carry out a call, or tells it that the call was cancelled. It does not block.
	Request(*Requested)
}

// answerTime is how long a connection may take to answer a call of a syscall that it provides.
const answerTime = 30 * time.Second

// Calls has the connections that provide registered syscalls, and the calls in flight to them. It is safe for concurrent
// use.
type Calls struct {
	time time.Duration
	id   func() string
	long chan struct{} // slots for answers that are read from blobs

	mu    sync.Mutex
	by    map[registered]binding
	calls map[string]*provided
}

// registered names a registered syscall.
type registered struct{ origin, name string }

// binding names the connection that provides a syscall.
type binding struct {
	conn    Provider
	dialect schema.Dialect // of its registration
}

// provided is a call in flight to its provider.
type provided struct {
	by      Provider
	dialect schema.Dialect // of its request
	from    string         // the calling connection
	causes  []*provided    // calls that from carries out, for one of which it may make this one
	over    bool           // it is answered
	answer  chan answer    // buffered: one answer

	pid    int64  // the PID that makes it
	origin string // of the stored data that the PID sees
	check  func(data []byte) *fault.Fault

	message  string             // its message id, from the caller
	progress func(kernel.Event) // pushes progress to the caller; nil: the caller wants none
	told     time.Time          // time of the last progress event
}

// answer is the outcome of a call: data, which may refer to a blob, or an error.
type answer struct {
	data      []byte
	elsewhere *kernel.Elsewhere
	err       *fault.Fault
}

// waits reports whether a connection waits for the call: it made the call, or one that led to it, or carries it out.
func (call *provided) waits(conn string, seen map[*provided]bool) bool {
	seen[call] = true
	return call.from == conn || slices.ContainsFunc(call.causes, func(cause *provided) bool {
		return !cause.over && !seen[cause] && (cause.by.Name() == conn || cause.waits(conn, seen))
	})
}

// New returns calls that must be answered within limit, by default 30 s, and that get their ids from id.
func New(limit time.Duration, id func() string) *Calls {
	return &Calls{
		time: cmp.Or(limit, answerTime), id: id, long: make(chan struct{}, longAnswers),
		by: make(map[registered]binding), calls: make(map[string]*provided),
	}
}

// Requested tells a connection to carry out a call, or that the call was cancelled.
type Requested struct {
	Dialect schema.Dialect
	CallID  string
	Event   kernel.Event
}

// Registers reports whether a call has made its connection the provider of a syscall.
func Registers(call *kernel.Call) bool {
	if call.Err != nil || call.Syscall != schema.SyscallRegister.Row() {
		return false
	}
	in := call.Input.(*schema.RegisterInput)
	return in.Provider != nil && (!schema.UserSpace(in.Name) || call.PID != kernel.Operator) // the operator registers a path for another process
}

// Bind makes a connection the provider of what it has registered with a call, replacing another. It must be called before
// any call of the syscall begins.
func (p *Calls) Bind(call *kernel.Call, by Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !by.Over() { // otherwise Unbind has run
		p.by[registered{call.Origin, call.Input.(*schema.RegisterInput).Name}] = binding{by, call.Message.Dialect}
	}
}

// Unbind removes what a connection provides, and fails the calls in flight to it.
func (p *Calls) Unbind(c Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one, by := range p.by {
		if by.conn == c {
			delete(p.by, one)
		}
	}
	for id, call := range p.calls {
		if call.by == c {
			p.answer(id, call, answer{err: fault.ProviderDied.New("the provider's connection ended before it answered: the call may or may not have had effects")})
		}
	}
}

// answer gives a call its outcome, once. p is locked.
func (p *Calls) answer(id string, call *provided, o answer) {
	delete(p.calls, id)
	call.over = true
	call.answer <- o
}

// Run is the runner of calls that a connection provides.
func (p *Calls) Run(ctx context.Context, job *kernel.Job) ([]byte, error) {
	do := job.Do.(*kernel.Invocation)
	id, call, err := p.begin(job, do)
	if err != nil {
		return nil, err
	}
	request := &schema.RequestedEvent{CallID: id, Type: do.Name, Data: do.Data, PID: job.PID, Progress: job.Progress != nil}
	if schema.UserSpace(do.Name) {
		request.Digest = do.Digest()
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask provider: %w", err)
	}
	call.by.Request(&Requested{call.dialect, id, kernel.Event{Type: schema.SyscallRequested, Data: data, Causation: job.ID}})
	late := time.NewTimer(p.time)
	defer late.Stop()
	var why *fault.Fault
	select {
	case o := <-call.answer:
		return o.of(job)
	case <-late.C:
		why = fault.ProviderTimeout.New("%s was not answered by its provider in %v: it may or may not have had effects", do.Name, p.time)
	case <-ctx.Done():
		why = fault.CallCancelled.New("%s was cancelled", do.Name)
	}
	p.end(id, call, why)
	if data, err = schema.Marshal(&schema.CancelledEvent{CallID: id}); err != nil {
		return nil, fmt.Errorf("tell provider: %w", err)
	}
	call.by.Request(&Requested{call.dialect, id, kernel.Event{Type: schema.SyscallCancelled, Data: data, Causation: job.ID}})
	return (<-call.answer).of(job) // it may have been answered meanwhile
}

// of converts the answer to what the runner of its job returns.
func (o answer) of(job *kernel.Job) ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	job.Elsewhere = o.elsewhere
	return o.data, nil
}

// begin registers a call in flight to the provider of its syscall, which is asked in the dialect of its registration.
func (p *Calls) begin(job *kernel.Job, do *kernel.Invocation) (string, *provided, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := do.Name
	if entry, ok := schema.MCPEntry(name); ok {
		name = entry // the provider of a path provides everything below it
	}
	by := p.by[registered{do.Origin, name}]
	c := by.conn
	if c == nil {
		return "", nil, fault.ProviderAway.New("the provider of %s is away: nothing was done", do.Name)
	}
	id, call := p.id(), &provided{by: c, dialect: by.dialect, from: job.Conn, causes: p.causes(job), answer: make(chan answer, 1), message: job.ID, progress: job.Progress}
	call.pid, call.origin, call.check = job.PID, job.Origin, do.CheckOutput
	if call.waits(c.Name(), make(map[*provided]bool)) {
		return "", nil, fault.ProviderItself.New("%s would wait for itself: its provider waits for this call", do.Name)
	}
	p.calls[id] = call
	return id, call, nil
}

// causes returns the calls that may have led to one: the call whose call_id it names as its causation, otherwise all that
// its connection carries out. p is locked.
func (p *Calls) causes(job *kernel.Job) (calls []*provided) {
	if job.Cause != "" {
		if call := p.calls[job.Cause]; call != nil {
			calls = append(calls, call)
		}
		return calls
	}
	for _, call := range p.calls {
		if call.by.Name() == job.Conn {
			calls = append(calls, call)
		}
	}
	return calls
}

// end cancels a call, unless it is answered.
func (p *Calls) end(id string, call *provided, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] == call {
		p.answer(id, call, answer{err: why})
	}
}

// Refuse ends a call that cannot be sent to its provider.
func (p *Calls) Refuse(id string, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call := p.calls[id]; call != nil {
		p.answer(id, call, answer{err: why})
	}
}

// Complete answers a call for its provider, with an answer that is not in a blob. It returns what is wrong with the answer.
func (p *Calls) Complete(c Provider, in *schema.CompleteInput) *fault.Fault {
	var o answer
	switch {
	case given(in) != 1:
		return kernel.Invalid("data", "dataRef or error is required, and one of the three is given")
	case in.Error != nil:
		said, id := in.Error.Message, fault.ProviderFailed
		switch code := in.Error.Code; {
		case code != nil && *code == int64(fault.Unavailable.Status()):
			id = fault.ProviderAway
		case code != nil:
			said = fmt.Sprintf("%s (%d)", said, *code)
		}
		o.err = id.New("the provider says: %s", said)
	case !schema.ValidWithin(in.Data, schema.MaxKeptDepth):
		return kernel.Invalid("data", "must not be nested deeper than %d levels", schema.MaxKeptDepth)
	default:
		o.data = append([]byte(nil), in.Data...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[in.CallID]
	if call == nil || call.by != c {
		return schema.NoCall(in.CallID)
	}
	p.answer(in.CallID, call, o)
	return nil
}

// given counts the forms of answer that are present.
func given(in *schema.CompleteInput) (n int) {
	for _, is := range []bool{in.Data != nil, in.DataRef != nil, in.Error != nil} {
		if is {
			n++
		}
	}
	return n
}

// progressEvery is the minimum time between two progress events to a caller; events in between are dropped.
const progressEvery = 100 * time.Millisecond

// Progress pushes the progress of a call to its caller, if the caller wants it. It returns what is wrong with the
// event.
func (p *Calls) Progress(c Provider, in *schema.ProgressInput) *fault.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[in.CallID]
	if call == nil || call.by != c {
		return schema.NoCall(in.CallID)
	}
	now := time.Now()
	if call.progress == nil || now.Sub(call.told) < progressEvery {
		return nil
	}
	call.told = now
	data, err := schema.Marshal(&schema.ProgressedEvent{ID: call.message, Progress: in.Progress, Total: in.Total, Message: in.Message})
	if err != nil {
		return fault.Of(fmt.Errorf("tell caller: %w", err))
	}
	call.progress(kernel.Event{Type: schema.SyscallProgressed, Data: data, Causation: call.message}) // with p locked, so that it precedes the answer
	return nil
}

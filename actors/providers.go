package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// providerTime is how long a connection may take to answer a call of a syscall that it provides.
const providerTime = 30 * time.Second

// providers has the connections that provide registered syscalls, and the calls in flight to them. It is safe for
// concurrent use.
type providers struct {
	time time.Duration
	ids  *ids
	long chan struct{} // slots for answers that are read from blobs

	mu    sync.Mutex
	by    map[registered]provider
	calls map[string]*provided
}

// registered names a registered syscall.
type registered struct{ origin, name string }

// provider is the connection that provides a syscall.
type provider struct {
	conn    *connection
	dialect schema.Dialect // of its registration
}

// provided is a call in flight to its provider.
type provided struct {
	by      *connection
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
		return !cause.over && !seen[cause] && (cause.by.caller.Conn == conn || cause.waits(conn, seen))
	})
}

func newProviders(limit time.Duration, ids *ids) *providers {
	return &providers{time: limit, ids: ids, long: make(chan struct{}, longAnswers), by: make(map[registered]provider), calls: make(map[string]*provided)}
}

// requested tells a connection to carry out a call, or that the call was cancelled.
type requested struct {
	dialect schema.Dialect
	callID  string
	event   kernel.Event
}

// bind makes a connection the provider of what it has registered with a call, replacing another.
func (p *providers) bind(call *kernel.Call, c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.over.Load() { // otherwise unbind has run
		p.by[registered{call.Origin, call.Input.(*schema.RegisterInput).Name}] = provider{c, call.Message.Dialect}
	}
}

// bind makes the connection the provider of what f registers. A registration is bound when its answer leaves, and effects
// begin in the same order: who can see the registration can call it.
func (f *frames) bind(p *providers) {
	for i := range f.calls {
		if call := &f.calls[i]; f.from != nil && registers(call) {
			p.bind(call, f.from)
		}
	}
}

// registers reports whether a call has made its connection the provider of a syscall.
func registers(call *kernel.Call) bool {
	if call.Err != nil || call.Syscall != schema.SyscallRegister.Row() {
		return false
	}
	in := call.Input.(*schema.RegisterInput)
	return in.Provider != nil && (!schema.UserSpace(in.Name) || call.PID != kernel.Operator) // the operator registers a path for another process
}

// unbind removes what a connection provides, and fails the calls in flight to it.
func (p *providers) unbind(c *connection) {
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
func (p *providers) answer(id string, call *provided, o answer) {
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
	request := &schema.RequestedEvent{CallID: id, Type: do.Name, Data: do.Data, PID: job.PID, Progress: job.Progress != nil}
	if schema.UserSpace(do.Name) {
		request.Digest = do.Digest()
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask provider: %w", err)
	}
	call.by.tell(&requested{call.dialect, id, kernel.Event{Type: schema.SyscallRequested, Data: data, Causation: job.ID}})
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
	call.by.tell(&requested{call.dialect, id, kernel.Event{Type: schema.SyscallCancelled, Data: data, Causation: job.ID}})
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
func (p *providers) begin(job *kernel.Job, do *kernel.Invocation) (string, *provided, error) {
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
	id, call := p.ids.next(), &provided{by: c, dialect: by.dialect, from: job.Conn, causes: p.causes(job), answer: make(chan answer, 1), message: job.ID, progress: job.Progress}
	call.pid, call.origin, call.check = job.PID, job.Origin, do.CheckOutput
	if call.waits(c.caller.Conn, make(map[*provided]bool)) {
		return "", nil, fault.ProviderItself.New("%s would wait for itself: its provider waits for this call", do.Name)
	}
	p.calls[id] = call
	return id, call, nil
}

// causes returns the calls that may have led to one: the call whose call_id it names as its causation, otherwise all that
// its connection carries out. p is locked.
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

// end cancels a call, unless it is answered.
func (p *providers) end(id string, call *provided, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] == call {
		p.answer(id, call, answer{err: why})
	}
}

// refuse ends a call that cannot be sent to its provider.
func (p *providers) refuse(id string, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call := p.calls[id]; call != nil {
		p.answer(id, call, answer{err: why})
	}
}

// complete answers a call for its provider. It returns what is wrong with the answer.
func (p *providers) complete(c *connection, in *schema.CompleteInput) *fault.Fault {
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

// progress pushes the progress of a call to its caller, if the caller wants it. It returns what is wrong with the
// event.
func (p *providers) progress(c *connection, in *schema.ProgressInput) *fault.Fault {
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

// provide handles a provider's Syscall.Complete and Syscall.Progress. They do not queue after other frames of its
// connection, which may wait for the caller. A Syscall.Complete is then journaled like any call; a Syscall.Progress is
// answered here and not journaled. An answer by reference is left to readReferences. Any goroutine may call it.
func (c *connection) provide(call *kernel.Call) {
	if call.Err != nil {
		return
	}
	switch in := call.Input.(type) {
	case *schema.CompleteInput:
		if answersByRef(call) {
			return
		}
		call.Refused = c.kernel.providers.complete(c, in)
		call.Parked = call.Refused == nil // a bound must not refuse what has already happened
	case *schema.ProgressInput:
		if call.Err = c.kernel.providers.progress(c, in); call.Err == nil {
			call.Data = schema.SuccessOutput{Success: true}.AppendJSON(nil)
		}
	}
}

// fits reports whether an event fits a line.
func (c *connection) fits(e *kernel.Event) bool {
	const envelope, escaped = 512, 6 // bytes: for the rest of the line; the most that one byte of an id takes
	return len(e.Data)+escaped*len(e.Causation)+envelope <= c.link.LineLimit()
}

// pushOne pushes an event that fits a line and belongs to no subscription.
func (c *connection) pushOne(d schema.Dialect, e *kernel.Event) {
	c.push(&subscription{following: &following{call: kernel.NewCall(kernel.Request{Message: schema.Message{Dialect: d}}, kernel.Undecided)}}, schema.Proof{}, []kernel.Event{*e})
}

// progressed sends a connection the progress of a call.
type progressed struct {
	dialect schema.Dialect // of the call
	event   kernel.Event
}

// progressed pushes a Syscall.Progressed. It drops the event if the peer does not read, or it does not fit a line.
func (c *connection) progressed(p *progressed) {
	if !c.writer.full && !c.drained && c.fits(&p.event) {
		c.pushOne(p.dialect, &p.event)
	}
}

// requested pushes a Syscall.Requested, if the peer reads and it fits a line.
func (c *connection) requested(r *requested) {
	is := c.kernel.processes.Process(c.caller.PID)
	switch {
	case c.writer.full || c.drained:
		c.kernel.providers.refuse(r.callID, fault.ProviderAway.New("the provider's connection reads nothing: nothing was done"))
	case is != nil && is.State == "TERMINATED":
		c.kernel.providers.refuse(r.callID, fault.ProviderAway.New("the provider, pid %d, has ended: nothing was done", is.PID))
	case !c.fits(&r.event):
		c.kernel.providers.refuse(r.callID, fault.WireTooLong.New("the call is longer than a line of its provider's connection: nothing was done"))
	default:
		c.pushOne(r.dialect, &r.event)
	}
}

// changed updates the connection after an answered call.
func (c *connection) changed(call *kernel.Call) {
	switch {
	case call.Err != nil || call.Syscall == nil:
	case call.Syscall == schema.ProcessAttach.Row():
		c.attached(call)
	case registers(call):
		c.provides = true
	}
}

// MaxAnswer bounds an answer that a provider gives by reference, in bytes. One of more than MaxInlined is passed to the
// caller by reference too, so it is not in the journal.
const MaxAnswer = 16 << 20

// longAnswers is how many answers are read at a time, since they take memory.
const longAnswers = 2

// answersByRef reports whether a call is a Syscall.Complete whose answer is in a blob.
func answersByRef(call *kernel.Call) bool {
	in, ok := call.Input.(*schema.CompleteInput)
	return ok && call.Err == nil && in.DataRef != nil
}

// completeLong is complete for an answer by reference. It reads and writes files. ending ends with the kernel.
func (p *providers) completeLong(ending context.Context, k *Kernel, c *connection, in *schema.CompleteInput) *fault.Fault {
	p.mu.Lock()
	call := p.calls[in.CallID]
	p.mu.Unlock()
	switch {
	case given(in) != 1:
		return p.complete(c, in) // to get the error
	case call == nil || call.by != c:
		return schema.NoCall(in.CallID)
	case k.blobs == nil:
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	if err := in.DataRef.Valid("dataRef"); err != nil {
		return err
	}
	select {
	case p.long <- struct{}{}:
		defer func() { <-p.long }()
	case <-ending.Done():
		return errEnding
	}
	content, err := k.blobs.Read(c.caller.PID, k.originOf(&c.caller), in.DataRef.Pointer(), MaxAnswer)
	if err != nil {
		return fault.Of(err)
	}
	data, wrong := schema.OneLine("data", content, in.DataRef.Pointer().Text())
	switch {
	case wrong != nil:
		return wrong
	case len(data) <= MaxInlined:
		return p.complete(c, &schema.CompleteInput{CallID: in.CallID, Data: data})
	case !schema.ValidWithin(data, schema.MaxKeptDepth):
		return kernel.Invalid("dataRef", "must not refer to what is nested deeper than %d levels", schema.MaxKeptDepth)
	}
	o := answer{err: call.check(data)}
	if o.err == nil {
		sum := sha256.Sum256(data)
		o.elsewhere = &kernel.Elsewhere{Digest: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
		o.data, o.elsewhere.Refs, err = schema.Refer(schema.SyscallInvoke.Output(), data, 0, func(content []byte, text bool) (schema.BlobPointer, error) {
			return k.blobs.Put(call.pid, call.origin, text, bytes.NewReader(content))
		})
		if err != nil {
			return fault.Of(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[in.CallID] != call {
		return schema.NoCall(in.CallID)
	}
	p.answer(in.CallID, call, o)
	return nil
}

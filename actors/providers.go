package actors

import (
	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// provide handles a provider's Syscall.Complete and Syscall.Progress. They do not queue after other frames of its
// connection, which may wait for the caller. A Syscall.Complete is then journaled like any call; a Syscall.Progress is
// answered here and not journaled. An answer by reference is left to readReferences. Any goroutine may call it.
func (c *connection) provide(call *kernel.Call) {
	if call.Err != nil {
		return
	}
	switch in := call.Input.(type) {
	case *schema.CompleteInput:
		if provide.AnswersByRef(call) {
			return
		}
		call.Refused = c.kernel.providers.Complete(c, in)
		call.Parked = call.Refused == nil // a bound must not refuse what has already happened
	case *schema.ProgressInput:
		if call.Err = c.kernel.providers.Progress(c, in); call.Err == nil {
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
func (c *connection) requested(r *provide.Requested) {
	is := c.kernel.processes.Process(c.caller.PID)
	switch {
	case c.writer.full || c.drained:
		c.kernel.providers.Refuse(r.CallID, fault.ProviderAway.New("the provider's connection reads nothing: nothing was done"))
	case is != nil && is.State == "TERMINATED":
		c.kernel.providers.Refuse(r.CallID, fault.ProviderAway.New("the provider, pid %d, has ended: nothing was done", is.PID))
	case !c.fits(&r.Event):
		c.kernel.providers.Refuse(r.CallID, fault.WireTooLong.New("the call is longer than a line of its provider's connection: nothing was done"))
	default:
		c.pushOne(r.Dialect, &r.Event)
	}
}

// changed updates the connection after an answered call.
func (c *connection) changed(call *kernel.Call) {
	switch {
	case call.Err != nil || call.Syscall == nil:
	case call.Syscall == schema.ProcessAttach.Row():
		c.attached(call)
	case provide.Registers(call):
		c.provides = true
	}
}

// bind makes the connection of f the provider of what it registers. A registration is bound when its answer leaves, and
// effects begin in the same order: who can see the registration can call it.
func (f *frames) bind(p *provide.Calls) {
	for i := range f.calls {
		if call := &f.calls[i]; f.from != nil && provide.Registers(call) {
			p.Bind(call, f.from)
		}
	}
}

// Name implements provide.Provider.
func (c *connection) Name() string { return c.caller.Conn }

// Over implements provide.Provider.
func (c *connection) Over() bool { return c.over.Load() }

// Request implements provide.Provider.
func (c *connection) Request(r *provide.Requested) { c.tell(r) }

package actors

import (
	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// fits reports whether an event fits a line.
func (c *connection) fits(e *kernel.Event) bool {
	const envelope, escaped = 512, 6 // bytes: for the rest of the line; the most that one byte of an id takes
	return len(e.Data)+escaped*len(e.Causation)+envelope <= c.link.LineLimit()
}

// pushOne pushes an event that fits a line and belongs to no subscription.
func (c *connection) pushOne(d schema.Dialect, e *kernel.Event) {
	c.push(&subscription{following: &following{call: kernel.NewCall(kernel.Request{Message: schema.Message{Dialect: d}}, kernel.Undecided)}}, schema.Proof{}, []kernel.Event{*e})
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

// Name implements provide.Provider.
func (c *connection) Name() string { return c.caller.Conn }

// Over implements provide.Provider.
func (c *connection) Over() bool { return c.over.Load() }

// Request implements provide.Provider.
func (c *connection) Request(r *provide.Requested) { c.tell(r) }

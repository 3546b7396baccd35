package actors

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// bars reports whether nothing behind a call is taken in before it is answered: what follows is decoded, charged and judged by what
// the call changes.
func bars(call *kernel.Call) bool { return call.Err == nil && call.Syscall.Barrier }

// isAttach reports whether a call is to make its connection another process.
func isAttach(call *kernel.Call) bool {
	return call.Err == nil && call.Syscall == schema.ProcessAttach.Row()
}

// mayAttach is what is to be said against an attach of the connection. All that was sent before it has been answered.
func (c *connection) mayAttach() *fault.Fault {
	if len(c.following) > 0 || len(c.endings) > 0 || c.provides {
		return fault.ConnectionFollows.New("this connection has subscriptions, unacknowledged mail, or syscalls that it provides, and stays who it is")
	}
	return nil
}

// attached makes the connection the process that an answered attach names. What is in flight counts as that process's from here on.
func (c *connection) attached(call *kernel.Call) {
	out, err := schema.ProcessAttach.Decode(call.Data)
	if err != nil {
		panic("attach: the kernel's own reply: " + err.Error())
	}
	c.caller.PID, c.caller.Origin = out.PID, ""
	if via := call.Input.(*schema.AttachInput).Via; via != nil {
		c.caller.Via = *via
	}
	drawn := c.kernel.accounts.open(out.PID)
	drawn.add(c.credits.bytes)
	c.credits.account = drawn
}

package actors

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// isAttach reports whether a call is to make its connection another process. Nothing is taken in behind it until it is answered:
// what follows is that process's from the first byte on.
func isAttach(call *kernel.Call) bool {
	return call.Err == nil && call.Syscall == schema.ProcessAttach.Row()
}

// attached makes the connection the process that an answered attach names. What is in flight counts as that process's from here on.
func (c *connection) attached(call *kernel.Call) {
	if !isAttach(call) {
		return
	}
	out, err := schema.ProcessAttach.Decode(call.Data)
	if err != nil {
		panic("attach: the kernel's own reply: " + err.Error())
	}
	c.caller.PID, c.caller.Origin = out.PID, ""
	drawn := c.kernel.accounts.open(out.PID)
	drawn.add(c.credits.bytes)
	c.credits.account = drawn
}

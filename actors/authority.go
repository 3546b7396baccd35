package actors

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// admit gives a call what it needs to be decided: on whose behalf it is made and at which tick, with the token to judge
// it by. It refuses an agent that names another process, or a tick that has not come (PROTOCOL 5, 6), and who may not
// call the syscall at all (CAP 2, 5).
func (k *Kernel) admit(call *kernel.Call) *schema.Error {
	call.PID = call.Caller.PID
	refused, early := k.actAs(call)
	call.Tick = k.clock.now()
	call.Token = k.tokens.Token(call.PID)
	call.Origin = k.origin
	if call.Caller.Origin != "" {
		call.Origin = call.Caller.Origin
	}
	if chosen := call.Message.Meta.Origin; chosen != "" && call.Caller.PID == kernel.Operator {
		var err error
		if call.Origin, err = k.readOrigin(chosen); err != nil {
			call.Origin = k.origin
			return kernel.Invalid("metadata.origin", "is none: %v", err)
		}
	}
	if p := k.processes.Process(call.PID); p != nil {
		call.Origin = p.Origin
	}
	if refused != nil {
		return refused
	}
	if call.Caller.Kernel && call.Syscall.Internal {
		return nil // its domain judges what PID may do
	}
	if denied := kernel.Authorize(k.processes, call.PID, call.Token, call.Syscall, call.Tick); denied != nil {
		return denied // before anything else is judged (CAP 5)
	}
	return early
}

// actAs takes the process and the tick that the call names. An agent's that has not come yet is early.
func (k *Kernel) actAs(call *kernel.Call) (refused, early *schema.Error) {
	in, ok := call.Input.(schema.Targeted)
	if !ok {
		return nil, nil
	}
	on, operator := in.On(), call.Caller.PID == kernel.Operator
	if on.PID != nil && *on.PID != call.PID {
		if !operator {
			return fault.CapabilityNotYours.New("pid %d may not act as pid %d: leave out pid, or name your own", call.PID, *on.PID), nil
		}
		call.PID = *on.PID
	}
	if on.Tick != nil {
		if operator {
			k.clock.reach(*on.Tick)
		} else if now := k.clock.now(); *on.Tick > now {
			return nil, fault.ClockAhead.New("Invalid input: tick must not lie ahead of the kernel's, which is %d", now).At("tick")
		}
	}
	return nil, nil
}

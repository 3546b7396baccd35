package actors

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Code is how code is taken that provides a syscall. The runner of Syscall.Invoke calls it.
type Code struct {
	// Check returns what is wrong with code that is to be registered. It takes long. nil: none can be registered.
	Check  func(ctx context.Context, source string) error
	AtOnce int // handlers that run at the same time, half of them at most one process's; more wait
}

// codeOf is the code that a call wants to register, nil where it is no such call.
func codeOf(call *kernel.Call) *string {
	if in, ok := call.Input.(*schema.RegisterInput); ok && call.Err == nil {
		return in.Code
	}
	return nil
}

// checkCode finds out what is wrong with the code that a call wants to register, on a goroutine beside the loop. That of
// somebody who may not register it is not looked at.
func (k *Kernel) checkCode(call *kernel.Call) {
	call = subject(call)
	source, pid := codeOf(call), call.Caller.PID
	if source == nil {
		return
	}
	if call.Refused = kernel.Authorize(k.processes, pid, k.tokens.Token(pid), call.Syscall, k.clock.now()); call.Refused != nil {
		return
	}
	if k.code.Check == nil {
		call.Refused = fault.KernelUnsupported.New("this kernel runs no code")
		return
	}
	back, err := k.runs.codes.take(k.runs.ending, pid)
	if err == nil {
		defer back()
		err = k.code.Check(k.runs.ending, *source)
	}
	if err != nil {
		call.Refused = fault.Of(err)
	}
}

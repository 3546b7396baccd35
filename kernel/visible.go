package kernel

import "github.com/promptware-os/pwos/schema"

// Visible returns the descriptor of pid where the call may know of that process, else nil: the operator knows of all, an
// agent of those of its origin (ABI 6.4). What is not visible has to be answered exactly as what never was.
//
// A process that is forgotten is visible to the operator alone: whose it was is forgotten too.
func Visible(processes Processes, call *Call, pid int64) *schema.Descriptor {
	p := processes.Process(pid)
	if p == nil || call.PID == Operator || p.Origin == call.Origin {
		return p
	}
	return nil
}

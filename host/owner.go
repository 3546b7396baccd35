package host

import "errors"

// Why it cannot be said whose a process is. A peer that gives one of them must be refused: it is no agent that may be
// served, and it may be anything but the operator.
var (
	// ErrGone says that the process has ended, so that its number may be another's.
	ErrGone = errors.New("process has ended")
	// ErrStranger says that the process belongs to an agent that is not (or no longer) ours.
	ErrStranger = errors.New("process belongs to an agent of another host, or to one that was terminated")
	// ErrTampered says that the process carries a mark that was tampered with. That is the act of an agent.
	ErrTampered = errors.New("process carries a spoiled mark: it lowered its limit on file locks or resident memory")
	// ErrExhausted says that the kernel lacks the file descriptor that it takes to find out. It says nothing of the process: ask
	// again once one is free. It comes with the system's own error.
	ErrExhausted = errors.New("cannot look at the process: no file descriptor is left")
)

// Has reports whether a process of the system is the agent's: its first one, or one that it started, however that has
// removed itself since.
func (p *Process) Has(osPID int) bool {
	owner, err := p.host.Owner(osPID)
	return err == nil && owner == p
}

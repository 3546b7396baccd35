package host

import "errors"

// Errors of finding a process's agent. A peer with one of them must be refused: it must not be served as an agent,
// and it may not be the operator.
var (
	// ErrGone says that the process has ended, so that its number may be another's.
	ErrGone = errors.New("process has ended")
	// ErrStranger says that the process belongs to an agent that is not, or no longer, ours.
	ErrStranger = errors.New("process belongs to an agent of another host, or to one that was terminated")
	// ErrTampered says that the process has a broken mark, which only an agent does.
	ErrTampered = errors.New("process carries a spoiled mark: it lowered its limit on file locks or resident memory")
	// ErrExhausted says that there is no file descriptor to find out. It says nothing about the process: ask again
	// later. It wraps the system's error.
	ErrExhausted = errors.New("cannot look at the process: no file descriptor is left")
)

// Has reports whether a process is the agent's: its first one or a descendant.
func (p *Process) Has(osPID int) bool {
	owner, err := p.host.Owner(osPID)
	return err == nil && owner == p
}

package host

import "errors"

// Errors of finding a process's agent. A peer with one of them must be refused: it must not be served as an agent, and it
// may not be the operator.
var (
	// ErrGone says that the process has ended, so its number may belong to another one.
	ErrGone = errors.New("process has ended")
	// ErrStranger says that the process belongs to an agent of another host, or to one that was terminated.
	ErrStranger = errors.New("process belongs to an agent of another host, or to one that was terminated")
	// ErrTampered says that the process has a broken mark, which only agents have.
	ErrTampered = errors.New("process has a broken mark: it has lowered its limit on file locks or resident memory")
	// ErrExhausted says that no file descriptor is left to find out. It says nothing about the process; callers may retry
	// later. It wraps the system's error.
	ErrExhausted = errors.New("cannot look at the process: no file descriptor is left")
)

// Has reports whether a process is the agent's: its first one or a descendant.
func (p *Process) Has(osPID int) bool {
	owner, err := p.host.Owner(osPID)
	return err == nil && owner == p
}

package schema

// Target is embedded in the data of every syscall that the operator may make on a process's behalf (PROTOCOL 5).
type Target struct {
	PID  *int64 `json:"pid,omitzero" keep:"always" min:"0" doc:"The process to act as: the operator may name any, an agent only itself. Default: the caller."`
	Tick *int64 `json:"tick,omitzero" keep:"always" min:"0" doc:"The tick at which the call is made. From the operator it moves the kernel's clock on; an agent's must not lie ahead of it."`
}

// On returns the target itself: what an input with an embedded Target is recognised by.
func (t *Target) On() *Target { return t }

// Targeted is an input that may name the process it is made for.
type Targeted interface{ On() *Target }

package schema

// ThrottledInput is the data of the kernel's own Kernel.Throttled, and of its outcome.
type ThrottledInput struct {
	PID   int64 `json:"pid" keep:"always" min:"1" doc:"The agent whose calls were refused."`
	Count int64 `json:"count" keep:"always" min:"1" doc:"How many calls it were, in a second at most."`
}

// The syscalls of this file.
var (
	KernelThrottled = NewStep[ThrottledInput, ThrottledInput](Syscall{
		Type: "Kernel.Throttled", Domain: Kernel,
		Description: "Notes calls that were refused because the agent was over one of its bounds.",
	})
)

func throttledRows() []*Syscall {
	return []*Syscall{KernelThrottled.Syscall}
}

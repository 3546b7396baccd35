package schema

// ThrottledInput is the data of the kernel's own Kernel.Throttled, and of its outcome.
type ThrottledInput struct {
	PID   int64 `json:"pid" keep:"always" min:"1" doc:"The agent whose calls were refused."`
	Count int64 `json:"count" keep:"always" min:"1" doc:"How many calls it were, in a second at most."`
}

// throttledRows are of the kernel's domain: what was throttled changes no state, it is for the record alone.
func throttledRows() []Syscall {
	return []Syscall{
		{
			Type: "Kernel.Throttled", Kind: KindCommand, Domain: Kernel, Internal: true, Input: TypeOf[ThrottledInput](), Output: TypeOf[ThrottledInput](),
			Description: "Notes calls that were refused because the agent was over one of its bounds.",
		},
	}
}

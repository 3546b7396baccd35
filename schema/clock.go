package schema

// ClockGetInput is the data of Clock.Get.
type ClockGetInput struct{}

// ClockAdvanceInput is the data of Clock.Advance.
type ClockAdvanceInput struct {
	Ticks int64 `json:"ticks" keep:"always" min:"0" max:"1000000000" doc:"How many ticks to move the clock on."`
}

// ClockOutput is what both answer.
type ClockOutput struct {
	Tick int64 `json:"tick" keep:"always" doc:"The kernel's tick."`
}

func clockRows() []Syscall {
	return []Syscall{
		{
			Type: "Clock.Get", Kind: KindQuery, Domain: Kernel, Input: TypeOf[ClockGetInput](), Output: TypeOf[ClockOutput](),
			Description: "Returns the kernel's tick.",
		},
		{
			Type: "Clock.Advance", Kind: KindCommand, Domain: Kernel, Input: TypeOf[ClockAdvanceInput](), Output: TypeOf[ClockOutput](),
			Description: "Moves the kernel's clock on.",
		},
	}
}

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

// The syscalls of this file.
var (
	ClockGet = NewQuery[ClockGetInput, ClockOutput](Syscall{
		Type: "Clock.Get", Domain: Kernel,
		Script:      "scripts/kernel.txtar",
		Description: "Returns the kernel's tick.",
	})

	ClockAdvance = NewCommand[ClockAdvanceInput, ClockOutput](Syscall{
		Type: "Clock.Advance", Domain: Kernel,
		Script:      "scripts/kernel.txtar",
		Description: "Moves the kernel's clock on.",
	})
)

func clockRows() []*Syscall {
	return []*Syscall{ClockGet.Syscall, ClockAdvance.Syscall}
}

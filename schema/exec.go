package schema

// ProgramExecInput is the data of the kernel's own Program.Exec.
type ProgramExecInput struct {
	Path   string   `json:"path" keep:"always" doc:"Path of the program as it was requested, absolute; empty: it could not be read."`
	Argv   []string `json:"argv" keep:"arguments" doc:"Its arguments, with its name as the first. What looks secret is not recorded, nor more than 4096 bytes."`
	Cwd    string   `json:"cwd" keep:"always" doc:"Working directory of the process."`
	Step   string   `json:"step,omitzero" keep:"always" maxlen:"300" doc:"The tool call of a host that is open, as NAME:12; of several the last that began; absent: none is."`
	Cut    bool     `json:"cut,omitzero" keep:"always" doc:"Whether argv lacks the end: it is longer than the kernel reads."`
	Hidden bool     `json:"hidden,omitzero" keep:"always" doc:"Whether the process let nobody read what it executes."`
}

// ProgramExec is what the kernel calls for an agent before a process of it executes a program, if a rule forbids that or asks about it.
var ProgramExec = NewEffect[ProgramExecInput, SuccessOutput](Syscall{
	Type: "Program.Exec", Domain: Kernel, Internal: true, Immediate: true,
	Description: "A process of an agent executes a program about which a rule decides. The kernel calls it in the agent's name.",
}, Syscall{
	Type:        "Program.Executed",
	Description: "Records that a program that was approved was executed.",
})

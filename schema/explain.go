package schema

// Surroundings is what a program would have around it (PROTOCOL 9). Lists have at most MaxExplained elements, and fewer where they would not fit into a line.
type Surroundings struct {
	Dir         string   `json:"dir" keep:"always" doc:"Its working directory; empty: a private one."`
	Review      string   `json:"review,omitzero" keep:"always" doc:"Directory that it would work on a copy of, and leave as it is. Absent: none."`
	User        string   `json:"user,omitzero" keep:"always" doc:"User that it would run as. Absent: the kernel's."`
	Sandbox     string   `json:"sandbox" keep:"always" doc:"What would confine it on this machine, as in Process.Get."`
	Level       string   `json:"level" keep:"always" enum:"default strict off" doc:"Level of the sandbox."`
	Gaps        []string `json:"sandbox_gaps,omitzero" keep:"always" doc:"What the sandbox would not prevent on this machine."`
	Net         string   `json:"net" keep:"always" enum:"none kernel open" doc:"Its network."`
	Read        []string `json:"read" keep:"always" doc:"Paths that it may read beside those of the level."`
	Write       []string `json:"write" keep:"always" doc:"Paths that it may write."`
	Hidden      []string `json:"hidden" keep:"always" doc:"What is there and is hidden from it."`
	HiddenCount int64    `json:"hidden_count" keep:"always" doc:"How many such paths there are."`
	Masked      []string `json:"masked" keep:"always" doc:"Files of its project whose content is hidden from it until a person shows them."`
	Held        []string `json:"held" keep:"always" doc:"Files of its project that it may only read until a person allows more, since programs outside run what is in them."`
	Secret      []string `json:"secret" keep:"always" doc:"Files that it may read whose names look as if they had secrets, as far as a short search finds them."`
	Kept        []string `json:"kept" keep:"always" doc:"Directories whose changes could be undone, step by step."`
	NotKept     []string `json:"not_kept" keep:"always" doc:"Directories that it may write whose changes could not be undone, each with the reason."`
}

// MaxExplained bounds the lists of Surroundings.
const MaxExplained = 100

// ExplainOutput is the answer of Process.Explain.
type ExplainOutput struct {
	Surroundings
	Capabilities SpawnCapability `json:"capabilities" keep:"always" doc:"What it would be granted."`
}

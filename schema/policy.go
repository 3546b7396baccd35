package schema

// PolicyLoadedInput is the data of the kernel's own Policy.Loaded, and of its outcome.
type PolicyLoadedInput struct {
	Hash  string   `json:"hash" keep:"always" doc:"SHA-256 over the files, in hex; empty: there are none."`
	Files []string `json:"files" keep:"always" doc:"The files, in their order, relative to the configuration's directory."`
}

// PolicyReloadInput is the data of Policy.Reload.
type PolicyReloadInput struct{}

// PolicyReloadOutput is the answer of Policy.Reload.
type PolicyReloadOutput struct {
	Hash     string   `json:"hash" keep:"always" doc:"SHA-256 over the files, in hex; empty: there are none."`
	Files    []string `json:"files" keep:"always" doc:"The files, in their order."`
	Rules    int64    `json:"rules" keep:"always" doc:"How many rules are in them."`
	Warnings []string `json:"warnings" keep:"always" doc:"What may be wrong with them, as FILE:LINE: text."`
}

// PolicyShowInput is the data of Policy.Show.
type PolicyShowInput struct{}

// PolicyShowOutput is the answer of Policy.Show.
type PolicyShowOutput struct {
	Hash    string       `json:"hash" keep:"always" doc:"SHA-256 over the files, in hex; empty: there are none."`
	Files   []string     `json:"files" keep:"always" doc:"The files, in their order."`
	Invalid string       `json:"invalid,omitzero" keep:"always" doc:"Why every agent is refused, as FILE:LINE: text: the files could not be loaded at the start. Absent: they could."`
	Rules   []PolicyRule `json:"rules" keep:"always" doc:"The rules, in the order of the files; as many as a line holds."`
	More    int64        `json:"more,omitzero" keep:"always" doc:"How many rules are left out. Absent if none are."`
}

// PolicyRule is one rule of Policy.Show.
type PolicyRule struct {
	ID      string `json:"id" keep:"always" doc:"Its name."`
	At      string `json:"at" keep:"always" doc:"Where it is, as FILE:LINE."`
	Ask     string `json:"ask,omitzero" keep:"always" doc:"How long its question stays open. Absent if the rule forbids."`
	Decided int64  `json:"decided" keep:"always" doc:"How many calls it has decided since it was loaded."`
}

// The syscalls of the policy (PROTOCOL 10).
var (
	PolicyReload = NewEffect[PolicyReloadInput, PolicyReloadOutput](Syscall{
		Type: "Policy.Reload", Domain: Kernel, Grant: OperatorOnly,
		Script:      "scripts/policy.txtar",
		Description: "Reads the policy files again. If one is not valid, the old policy stays in force.",
	}, Syscall{
		Type:        "Policy.Reloaded",
		Description: "Ends a Policy.Reload: records what was read.",
	})

	PolicyShow = NewQuery[PolicyShowInput, PolicyShowOutput](Syscall{
		Type: "Policy.Show", Domain: Kernel, Grant: OperatorOnly,
		Script:      "scripts/policy.txtar",
		Description: "Shows the policy that is loaded: its files, its rules, and how many calls each has decided.",
	})

	PolicyLoaded = NewStep[PolicyLoadedInput, PolicyLoadedInput](Syscall{
		Type: "Policy.Loaded", Domain: Kernel,
		Description: "Records the policy that judges calls from here on.",
	})
)

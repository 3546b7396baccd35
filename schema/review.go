package schema

// The syscalls of this file.
var (
	ReviewApply = NewEffect[ReviewApplyInput, ReviewOutput](Syscall{
		Type: "Review.Apply", Domain: StepDomain, Grant: OperatorOnly,
		Script:      "scripts/review.txtar",
		Description: "Takes over what an agent changed in its copy of a directory, path by path: what was changed in the directory meanwhile stays, conflicts are told and then nothing is written. It is a step of the agent in the directory. Without paths, the copy is removed, unless the agent runs or something is left.",
	}, Syscall{
		Type:        "Review.Applied",
		Description: "Ends a Review.Apply: records what it changed.",
	})

	ReviewDiscard = NewEffect[ReviewDiscardInput, ReviewOutput](Syscall{
		Type: "Review.Discard", Domain: StepDomain, Grant: OperatorOnly,
		Script:      "scripts/review.txtar",
		Description: "Takes back what an agent changed in its copy of a directory and was not applied. Without paths, the copy is removed; the agent must not run then.",
	}, Syscall{
		Type:        "Review.Discarded",
		Description: "Ends a Review.Discard: records what was dropped.",
	})
)

// ReviewApplyInput is the data of Review.Apply.
type ReviewApplyInput struct {
	Target
	Agent   string   `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	Paths   []string `json:"paths,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths in the directory that the copy is of: only what is at or below them. Default: all."`
	Partial *bool    `json:"partial,omitzero" keep:"always" doc:"Take over what can be, and leave what conflicts."`
	DryRun  *bool    `json:"dry_run,omitzero" keep:"always" doc:"Change nothing: only say what would be done."`
	Expect  *string  `json:"expect,omitzero" keep:"always" maxlen:"64" doc:"The plan of an earlier answer: 409 if it would be another one now."`
}

// ReviewDiscardInput is the data of Review.Discard.
type ReviewDiscardInput struct {
	Target
	Agent  string   `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	Paths  []string `json:"paths,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths in the directory that the copy is of: only what is at or below them. Default: all."`
	DryRun *bool    `json:"dry_run,omitzero" keep:"always" doc:"Change nothing: only say what would be done."`
	Expect *string  `json:"expect,omitzero" keep:"always" maxlen:"64" doc:"The plan of an earlier answer: 409 if it would be another one now."`
}

// ReviewOutput is the answer of Review.Apply and Review.Discard.
type ReviewOutput struct {
	Agent     string         `json:"agent" keep:"always" doc:"Name of the agent."`
	Tree      string         `json:"tree" keep:"always" doc:"The directory that the copy is of."`
	Step      int64          `json:"step,omitzero" keep:"always" doc:"Number of the step that it is; absent: nothing was written."`
	Files     StepFiles      `json:"files" keep:"always" doc:"What is done to files; items that do not fit are left out."`
	Conflicts []StepConflict `json:"conflicts,omitzero" keep:"always" doc:"Paths that stay as they are; at most 100 of them."`
	DryRun    bool           `json:"dry_run,omitzero" keep:"always" doc:"Whether nothing was written because of that."`
	Ended     bool           `json:"ended,omitzero" keep:"always" doc:"Whether the copy was removed."`
	Plan      string         `json:"plan" keep:"always" doc:"Digest of what is done, for expect."`
}

// StepReview is a copy of a directory that an agent works on in its place, until it is applied or discarded.
type StepReview struct {
	Agent string `json:"agent" keep:"always" doc:"Name of the agent."`
	Tree  string `json:"tree" keep:"always" doc:"The directory that it is a copy of."`
	Copy  string `json:"copy" keep:"always" doc:"The copy, as steps of it name it."`
	Began int64  `json:"began" keep:"always" doc:"When it was made, in Unix milliseconds."`
	Runs  bool   `json:"runs,omitzero" keep:"always" doc:"Whether a program works in it."`
}

package schema

// StepDomain is the domain of the steps of agents: what their tool calls changed (PROTOCOL 12, Steps).
const StepDomain Domain = "step"

// The syscalls of this file.
var (
	StepBegin = NewEffect[StepBeginInput, StepBeginOutput](Syscall{
		Type: "Step.Begin", Domain: StepDomain,
		Script:      "scripts/steps.txtar",
		Description: "Begins a step of the caller: what changes in its directories until the matching Step.End belongs to this tool call. A host's hook calls it before the tool runs; who may use any tool of a host may.",
	}, Syscall{
		Type:        "Step.Began",
		Description: "Ends a Step.Begin: records the number of the step.",
	})

	StepEnd = NewEffect[StepEndInput, StepEndOutput](Syscall{
		Type: "Step.End", Domain: StepDomain,
		Script:      "scripts/steps.txtar",
		Description: "Ends a step of the caller, which is recorded as Step.Ended.",
	}, Syscall{
		Type:        "Step.Closed",
		Description: "Ends a Step.End: records how many files the step changed.",
	})

	PromptSubmit = NewEffect[PromptSubmitInput, PromptSubmitOutput](Syscall{
		Type: "Prompt.Submit", Domain: StepDomain,
		Script:      "scripts/prompts.txtar",
		Description: "Tells what a user asks of the caller: the steps that follow in the session have it as their reason. A host's hook calls it; who may use any tool of a host may. The text is not in the record.",
	}, Syscall{
		Type:        "Prompt.Submitted",
		Description: "Ends a Prompt.Submit: records the digest of the prompt.",
	})

	StepEnded = NewStep[StepState, SuccessOutput](Syscall{
		Type: "Step.Ended", Domain: StepDomain,
		Description: "Records a step: the tool call or period of activity of an agent, and what it changed in one directory.",
	})

	StepList = NewQuery[StepListInput, StepListOutput](Syscall{
		Type: "Step.List", Domain: StepDomain, Alone: true,
		Script:      "scripts/steps.txtar",
		Description: "Lists steps, oldest first: the caller's and its descendants', for the operator all, and the directories that they are kept of.",
	})

	StepGet = NewQuery[StepGetInput, StepGetOutput](Syscall{
		Type: "Step.Get", Domain: StepDomain, Alone: true,
		Script:      "scripts/steps.txtar",
		Description: "Returns a step whole: one record for each directory that it changed.",
	})

	StepDiff = NewQuery[StepDiffInput, StepDiffOutput](Syscall{
		Type: "Step.Diff", Domain: StepDomain, Alone: true, Grant: ByName,
		Script:      "scripts/steps.txtar",
		Description: "Returns what steps of an agent changed together, as git prints it, in parts. Secret contents are not in it; what is hidden from an agent can be, so it is the operator's, unless it is granted by its name.",
	})

	StepUndo = NewEffect[StepUndoInput, StepUndoOutput](Syscall{
		Type: "Step.Undo", Domain: StepDomain, Grant: ByName,
		Script:      "scripts/steps.txtar",
		Description: "Takes back what steps of an agent changed in one directory, path by path: later changes stay, conflicts are told and then nothing is written. The undo is a step too. The operator, unless it is granted by its name.",
	}, Syscall{
		Type:        "Step.Undone",
		Description: "Ends a Step.Undo: records what it changed.",
	})

	StepRedact = NewEffect[StepRedactInput, StepRedactOutput](Syscall{
		Type: "Step.Redact", Domain: StepDomain, Grant: OperatorOnly,
		Script:      "scripts/redactsteps.txtar",
		Description: "Removes from the store of a directory what a file had in it before and after a step, and since. The steps stay; an undo that needs such a content finds that it is missing.",
	}, Syscall{
		Type:        "Step.Redacted",
		Description: "Ends a Step.Redact: records what was removed.",
	})

	StepSubscribe = NewCommand[StepSubscribeInput, SuccessOutput](Syscall{
		Type: "Step.Subscribe", Domain: StepDomain,
		Script:      "scripts/steps.txtar",
		Description: "Pushes each step of the caller and its descendants, for the operator of all, on this connection until it closes, as events Step.Recorded.",
	})

	StepWatch = NewQuestion[StepWatchInput, SuccessOutput](Syscall{
		Type: "Step.Watch", Domain: StepDomain,
		Description: "Finds the steps that were recorded since the last push to a subscriber.",
	})
)

// StepRecorded is the event of Step.Subscribe. Its data is a StepState.
const StepRecorded = "Step.Recorded"

// The kinds of steps.
const (
	StepCall       = "call"
	StepActivity   = "activity"
	StepBackground = "background"
	StepOfUndo     = "undo"
	StepOfApply    = "apply"
)

// StepHeld is the tool of a step of the kind undo that has set aside what programs outside run.
const StepHeld = "held"

// MaxStepMarks bounds the items of StepFiles.Marked.
const MaxStepMarks = 8

// MaxStepItems bounds each list of a recorded step.
const MaxStepItems = 100

// StepBeginInput is the data of Step.Begin.
type StepBeginInput struct {
	Target
	Host        string  `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host, such as claude."`
	Session     string  `json:"session" keep:"always" maxlen:"256" doc:"Its session, as it names it."`
	Tool        string  `json:"tool" keep:"always" minlen:"1" maxlen:"256" doc:"The tool that it is about to use, such as Bash."`
	Use         *string `json:"use,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"The use of the tool, as the host names it. Default: the tool's only one in the session."`
	InputDigest *string `json:"input_digest,omitzero" keep:"always" maxlen:"64" doc:"Digest of the tool's input, in the form sha256-<base64>."`
}

// StepBeginOutput is the answer of Step.Begin.
type StepBeginOutput struct {
	Agent     string  `json:"agent" keep:"always" doc:"Name that the step is counted under."`
	Step      int64   `json:"step" keep:"always" doc:"Number of the step; 0: no directory of the caller is kept."`
	Uncovered *string `json:"uncovered,omitzero" keep:"always" doc:"What is not kept of it, and why."`
}

// StepEndInput is the data of Step.End.
type StepEndInput struct {
	Target
	Host    string  `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host, as in Step.Begin."`
	Session string  `json:"session" keep:"always" maxlen:"256" doc:"Its session, as in Step.Begin."`
	Tool    string  `json:"tool" keep:"always" minlen:"1" maxlen:"256" doc:"The tool, as in Step.Begin."`
	Use     *string `json:"use,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"The use of the tool, as in Step.Begin."`
	Failed  *bool   `json:"failed,omitzero" keep:"always" doc:"Whether the tool failed, as far as the host says."`
}

// StepEndOutput is the answer of Step.End.
type StepEndOutput struct {
	Agent string `json:"agent" keep:"always" doc:"Name that the step is counted under."`
	Step  int64  `json:"step" keep:"always" doc:"Number of the step; 0: none had begun."`
	Files int64  `json:"files" keep:"always" doc:"Number of paths that it changed."`

	Refused []StepRefused `json:"refused,omitzero" keep:"always" doc:"The first programs of the caller that were refused while it, or a tool call at the same time, was open."`
	More    int64         `json:"more,omitzero" keep:"always" doc:"How many more refusals there were."`
	Aside   StepItems     `json:"aside,omitzero" keep:"always" doc:"Files that it made and that were set aside, since programs outside run them; items are the first 8."`
}

// StepRefused is a program that was not executed.
type StepRefused struct {
	Program  string  `json:"program" keep:"always" maxlen:"300" doc:"The program with its arguments, without what looks secret."`
	Error    string  `json:"error" keep:"always" maxlen:"64" doc:"The stable id of the refusal, such as policy.denied."`
	Why      string  `json:"why" keep:"always" maxlen:"400" doc:"Why it was refused."`
	Rule     *string `json:"rule,omitzero" keep:"always" maxlen:"256" doc:"The rule that has refused it, or asks about it."`
	Fix      string  `json:"fix,omitzero" keep:"always" maxlen:"400" doc:"What to do about it."`
	Approval *string `json:"approval,omitzero" keep:"always" maxlen:"64" doc:"The question about it."`
}

// PromptSubmitInput is the data of Prompt.Submit.
type PromptSubmitInput struct {
	Target
	Host    string `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host, such as claude."`
	Session string `json:"session" keep:"always" maxlen:"256" doc:"Its session, as in Step.Begin."`
	Text    string `json:"text" keep:"never" maxlen:"65536" doc:"What the user wrote. It is kept beside the record, without what looks secret."`
}

// PromptSubmitOutput is the answer of Prompt.Submit.
type PromptSubmitOutput struct {
	Agent  string `json:"agent" keep:"always" doc:"Name of the agent."`
	Digest string `json:"digest" keep:"always" doc:"Digest of the text, in the form sha256-<base64>."`
}

// StepPrompt is the prompt that led to a step.
type StepPrompt struct {
	Entry  int64  `json:"entry" keep:"always" min:"1" doc:"Entry of its Prompt.Submit."`
	Digest string `json:"digest" keep:"always" maxlen:"64" doc:"Digest of its text."`
}

// StepState is a step in one directory, as it is recorded.
type StepState struct {
	Agent       string      `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent that it belongs to."`
	Step        int64       `json:"step" keep:"always" min:"1" doc:"Number of the step among those of that name."`
	PID         int64       `json:"pid" keep:"always" min:"0" doc:"Process that it belongs to."`
	Tree        string      `json:"tree" keep:"always" minlen:"1" maxlen:"4096" doc:"The directory."`
	Kind        string      `json:"kind" keep:"always" enum:"call activity background undo apply" doc:"call: a tool call. activity: what a program without hooks did in a period. background: what the agent's processes changed between its calls. undo: an undo. apply: what was taken over from its copy of the directory."`
	Tool        string      `json:"tool" keep:"always" maxlen:"256" doc:"The tool, as HOST/TOOL; else the kind."`
	InputDigest *string     `json:"input_digest,omitzero" keep:"always" maxlen:"64" doc:"Digest of the tool's input."`
	Cause       int64       `json:"cause,omitzero" keep:"always" min:"0" doc:"Entry of the call that began it."`
	Prompt      *StepPrompt `json:"prompt,omitzero" keep:"always" doc:"The prompt that led to it, as far as the host has told."`
	Began       int64       `json:"began" keep:"always" doc:"When it began, in Unix milliseconds."`
	Ended       int64       `json:"ended" keep:"always" doc:"When it ended, in Unix milliseconds."`
	Files       StepFiles   `json:"files" keep:"always" doc:"What it changed."`
	Programs    StepItems   `json:"programs" keep:"always" doc:"Programs that were started in it."`
	Connections StepItems   `json:"connections" keep:"always" doc:"Connections that were made in it."`
	Result      *string     `json:"result,omitzero" keep:"always" enum:"ok failed unknown" doc:"How the tool ended, as far as the host says; unknown: the kernel ended before it did."`
	Shared      bool        `json:"shared" keep:"always" doc:"Whether others were active in the directory at the same time: which changes are whose is not known."`
	With        []string    `json:"with,omitzero" keep:"always" maxlen:"300" doc:"The steps, or agents, that it shares its changes with."`
	Undoes      []int64     `json:"undoes,omitzero" keep:"always" doc:"Of an undo: the numbers of the steps that it took back."`
	Digest      string      `json:"digest" keep:"always" maxlen:"128" doc:"Digest of the whole record, which lies in the store of the directory."`
	Cuts        []int64     `json:"cuts,omitzero" keep:"always" doc:"The first and the last of its records in the store of the directory. Those of an undo between them are not its."`
}

// StepFiles is what a step did to files: counts, and the first of them.
type StepFiles struct {
	Made    int64      `json:"made" keep:"always" doc:"Number of paths that were made."`
	Changed int64      `json:"changed" keep:"always" doc:"Number of paths that were changed."`
	Removed int64      `json:"removed" keep:"always" doc:"Number of paths that were removed."`
	Missed  int64      `json:"missed,omitzero" keep:"always" doc:"Number of paths whose content is not kept."`
	Items   []StepFile `json:"items,omitzero" keep:"always" doc:"The first of them, by path: at most 100."`
	Marked  StepItems  `json:"marked,omitzero" keep:"always" doc:"Those that tools outside run or obey when a person builds, uses git, or starts an agent there; items are the first 8."`
}

// Count returns the number of paths.
func (f *StepFiles) Count() int64 { return f.Made + f.Changed + f.Removed }

// StepFile is a path of StepFiles.
type StepFile struct {
	Path string `json:"path" keep:"always" maxlen:"4096" doc:"The path, relative to the directory; bytes that are no text are escaped."`
	What string `json:"what" keep:"always" enum:"made changed removed missed" doc:"What happened to it."`
}

// StepItems is a list of a step: its length, and the first of it.
type StepItems struct {
	Count   int64    `json:"count" keep:"always" doc:"How many."`
	Refused int64    `json:"refused,omitzero" keep:"always" doc:"How many of them were refused."`
	Items   []string `json:"items,omitzero" keep:"always" maxlen:"512" doc:"The first of them: at most 100."`
}

// StepListInput is the data of Step.List.
type StepListInput struct {
	Target
	Agent *string `json:"agent,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Only steps of this name."`
	Path  *string `json:"path,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Only steps that changed this absolute path, or something below it. Of those it is the last, unless limit asks for more."`
	Since *int64  `json:"since,omitzero" keep:"always" min:"0" doc:"Only steps that ended then or later, in Unix milliseconds."`
	Until *int64  `json:"until,omitzero" keep:"always" min:"0" doc:"Only steps that ended then or earlier, in Unix milliseconds."`
	Limit *int64  `json:"limit,omitzero" keep:"always" min:"1" max:"1000" doc:"Most steps that are listed, the last ones. Default: 100; fewer if they fill an answer."`
}

// StepListOutput is the answer of Step.List.
type StepListOutput struct {
	Steps   []StepState  `json:"steps" keep:"always" doc:"The steps, oldest first, with the first three of their files, and without the items of other lists."`
	More    bool         `json:"more,omitzero" keep:"always" doc:"Whether there are older ones that did not fit: until, the end of the first, asks for them."`
	Trees   []StepTree   `json:"trees" keep:"always" doc:"The directories that agents work in at the moment, for the operator."`
	Reviews []StepReview `json:"reviews,omitzero" keep:"always" doc:"Copies of directories that wait to be applied or discarded, for the operator."`
}

// StepTree is a directory that steps are kept of, or should be.
type StepTree struct {
	Path   string   `json:"path" keep:"always" doc:"The directory."`
	Agents []string `json:"agents,omitzero" keep:"always" doc:"Agents that work in it."`
	Files  int64    `json:"files,omitzero" keep:"always" doc:"Entries of it."`
	Bytes  int64    `json:"bytes,omitzero" keep:"always" doc:"Size of its store."`
	Why    *string  `json:"why,omitzero" keep:"always" doc:"Why steps of it are not kept, or how it is kept otherwise than it should be."`
}

// StepGetInput is the data of Step.Get.
type StepGetInput struct {
	Target
	Agent string `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	Step  int64  `json:"step" keep:"always" min:"1" doc:"Number of the step."`
}

// StepGetOutput is the answer of Step.Get.
type StepGetOutput struct {
	Records []StepState `json:"records" keep:"always" doc:"One for each directory; items that do not fit the answer are left out."`
	Prompt  *string     `json:"prompt,omitzero" keep:"always" doc:"The beginning of the prompt that led to it, as far as it is kept."`
}

// StepDiffInput is the data of Step.Diff.
type StepDiffInput struct {
	Target
	Agent  string  `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	From   *int64  `json:"from,omitzero" keep:"always" min:"1" doc:"First step. Default: what was not applied yet, if the agent works on a copy; else the first of its latest run."`
	To     *int64  `json:"to,omitzero" keep:"always" min:"1" doc:"Last step. Default: from, or without from the last."`
	Path   *string `json:"path,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Only in the directory that holds this absolute path, and if it is in it, only what is at or below it."`
	Offset *int64  `json:"offset,omitzero" keep:"always" min:"0" doc:"How many bytes of the text to leave out: those of the parts before."`
}

// StepDiffOutput is the answer of Step.Diff.
type StepDiffOutput struct {
	Text string `json:"text" keep:"always" doc:"The next part of the text, which is encoded as Base64."`
	More bool   `json:"more" keep:"always" doc:"Whether there is another part."`
}

// StepUndoInput is the data of Step.Undo.
type StepUndoInput struct {
	Target
	Agent   string  `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	Tree    string  `json:"tree" keep:"always" minlen:"1" maxlen:"4096" doc:"The directory, or an absolute path in it."`
	Step    *int64  `json:"step,omitzero" keep:"always" min:"1" doc:"The step to take back."`
	Since   *int64  `json:"since,omitzero" keep:"always" min:"1" doc:"In place of step: this one and those after it."`
	LastMS  *int64  `json:"last_ms,omitzero" keep:"always" min:"1" doc:"In place of step: those that ended in the last milliseconds. Without any of the three: those of its latest run."`
	Partial *bool   `json:"partial,omitzero" keep:"always" doc:"Take back what can be, and leave what conflicts."`
	DryRun  *bool   `json:"dry_run,omitzero" keep:"always" doc:"Change nothing: only say what would be done."`
	Expect  *string `json:"expect,omitzero" keep:"always" maxlen:"64" doc:"The plan of an earlier answer: 409 if it would be another one now."`
}

// StepUndoOutput is the answer of Step.Undo.
type StepUndoOutput struct {
	Agent     string         `json:"agent" keep:"always" doc:"Name of the agent."`
	Tree      string         `json:"tree" keep:"always" doc:"The directory."`
	Steps     []int64        `json:"steps" keep:"always" doc:"The steps that are taken back, at most 100 of them."`
	Step      int64          `json:"step,omitzero" keep:"always" doc:"Number of the step that the undo is; absent: nothing was written."`
	Files     StepFiles      `json:"files" keep:"always" doc:"What is done to files; items that do not fit are left out."`
	Conflicts []StepConflict `json:"conflicts,omitzero" keep:"always" doc:"Paths that are not taken back; at most 100 of them."`
	Shared    []string       `json:"shared,omitzero" keep:"always" doc:"Other steps and agents that some of the changes may be of."`
	DryRun    bool           `json:"dry_run,omitzero" keep:"always" doc:"Whether nothing was written because of that."`
	Plan      string         `json:"plan" keep:"always" doc:"Digest of what is done, for expect."`
}

// StepConflict is a path that an undo leaves.
type StepConflict struct {
	Path  string `json:"path" keep:"always" maxlen:"4096" doc:"The path, relative to the directory."`
	Why   string `json:"why" keep:"always" maxlen:"512" doc:"Why it is left."`
	Aside bool   `json:"aside,omitzero" keep:"always" doc:"Whether it holds back nothing else: it is a reference or a setting of git."`
}

// StepRedactInput is the data of Step.Redact.
type StepRedactInput struct {
	Target
	Agent string `json:"agent" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent."`
	Step  int64  `json:"step" keep:"always" min:"1" doc:"Number of the step."`
	Path  string `json:"path" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute path of a file that the step changed, or of a directory with such files."`
}

// StepRedactOutput is the answer of Step.Redact.
type StepRedactOutput struct {
	Agent    string   `json:"agent" keep:"always" doc:"Name of the agent."`
	Step     int64    `json:"step" keep:"always" doc:"Number of the step."`
	Tree     string   `json:"tree" keep:"always" doc:"The directory."`
	Paths    []string `json:"paths" keep:"always" doc:"The files, relative to the directory; at most 100 of them."`
	Contents int64    `json:"contents" keep:"always" doc:"How many contents were removed; 0: they were not there any more."`
}

// StepSubscribeInput is the data of Step.Subscribe.
type StepSubscribeInput struct {
	Target
	Agent *string `json:"agent,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Only steps of this name."`
}

// StepWatchInput is the data of the kernel's own Step.Watch.
type StepWatchInput struct {
	Agent *string `json:"agent,omitzero" keep:"always" doc:"Only steps of this name."`
	Since int64   `json:"since" keep:"always" doc:"Number of the last step that was pushed."`
}

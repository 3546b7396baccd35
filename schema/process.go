package schema

import "strings"

// Process is the domain of the process table.
const Process Domain = "process"

// The syscalls of this file.
var (
	SyscallSpawn = NewPartialEffect[SpawnInput, SpawnOutput](Syscall{
		Type: "Syscall.Spawn", Code: "SYS_SPAWN", Domain: Process,
		Script:      "scripts/process.txtar",
		Description: "Adds a process under the caller, with a capability and a mailbox of its own. With a command it is answered once the program runs, or could not be started: the descriptor says which. With kernel, another kernel of the cluster adds it, under its process for this kernel.",
	}, Syscall{
		Type: "Process.SpawnedAbroad", Description: "Records what another kernel answered to a Syscall.Spawn.",
	})

	SyscallTerminate = NewPartialEffect[TerminateInput, TerminateOutput](Syscall{
		Type: "Syscall.Terminate", Code: "SYS_TERMINATE", Domain: Process, Urgent: true,
		Script:      "scripts/process.txtar",
		Description: "Ends a process and its descendants, with their tokens, reserved units, mailboxes and programs. It answers once they have ended. Ending one twice is fine. With kernel, it is a process of that kernel which was spawned from here.",
	}, Syscall{
		Type: "Process.EndedAbroad", Description: "Records what another kernel answered to a Syscall.Terminate.",
	})

	ProcessSettle = NewStep[ErrandSettled, SuccessOutput](Syscall{
		Type: "Process.Settle", Domain: Process,
		Description: "Records that the outcome of a call for another kernel is in the record: that kernel is not asked again.",
	})

	ProcessList = NewQuery[ProcessListInput, ProcessListOutput](Syscall{
		Type: "Process.List", Domain: Process, Alone: true,
		Script:      "scripts/process.txtar",
		Description: "Describes the processes there are, the latest ended ones included.",
	})

	ProcessGet = NewQuery[ProcessGetInput, Descriptor](Syscall{
		Type: "Process.Get", Domain: Process,
		Script:      "scripts/process.txtar",
		Description: "Describes a process.",
	})

	ProcessPause = NewCommand[PauseInput, PauseOutput](Syscall{
		Type: "Process.Pause", Domain: Process, Grant: OperatorOnly, Urgent: true,
		Script:      "scripts/pause.txtar",
		Description: "Pauses a process and its descendants, or all agents, until Process.Resume: programs are stopped (SIGSTOP), and calls wait. Pausing one twice is fine.",
	})

	ProcessResume = NewCommand[PauseInput, PauseOutput](Syscall{
		Type: "Process.Resume", Domain: Process, Grant: OperatorOnly, Urgent: true,
		Script:      "scripts/pause.txtar",
		Description: "Resumes a paused process and its descendants, or all agents.",
	})

	ProcessRestoreFiles = NewCommand[RestoreFilesInput, RestoreFilesOutput](Syscall{
		Type: "Process.RestoreFiles", Domain: Process, Grant: OperatorOnly,
		Script:      "scripts/snapshot.txtar",
		Description: "Records that the operator is about to restore the working directory of an ended process from a copy. It is refused while the process, or another program in that directory, is running. The kernel itself changes no files.",
	})

	ProcessExplain = NewQuery[SpawnInput, ExplainOutput](Syscall{
		Type: "Process.Explain", Domain: Process, Grant: ByName,
		Script:      "scripts/runexplain.txtar",
		Description: "Says what a Syscall.Spawn with this data would give to the process: what its program could read, write and reach, what is hidden from it, and its grant. Starts nothing, and changes nothing.",
	})

	ProcessSubscribe = NewQuery[ProcessSubscribeInput, ProcessSubscribeOutput](Syscall{
		Type: "Process.Subscribe", Domain: Process,
		Script:      "scripts/process.txtar",
		Description: "Pushes changes of a process and its descendants, from now on, on this connection until it closes, as events such as Process.Exited.",
	})

	ProcessAttach = NewCommand[AttachInput, AttachOutput](Syscall{
		Type: "Process.Attach", Domain: Process, Grant: OperatorOnly, Alone: true, Barrier: true,
		Script:      "scripts/process.txtar",
		Description: "Makes this connection the named process until it closes. A living child of the operator with the name keeps its mail, memory, grants and quotas; if there is none, it is made.",
	})

	ProcessWatch = NewQuestion[ProcessWatchInput, SuccessOutput](Syscall{
		Type: "Process.Watch", Domain: Process,
		Description: "Finds the changes of processes since the last push to a subscriber.",
	})

	ProcessPrepare = NewStep[ProcessPrepareInput, SuccessOutput](Syscall{
		Type: "Process.Prepare", Domain: Process,
		Description: "Records the grant of a process before it is spawned.",
	})

	ProcessExit = NewStep[ProcessExitInput, SuccessOutput](Syscall{
		Type: "Process.Exit", Domain: Process,
		Description: "Records that processes have ended.",
	})

	ProcessNoteStart = NewStep[ProcessStartInput, SuccessOutput](Syscall{
		Type: "Process.NoteStart", Domain: Process,
		Description: "Records that the program of a process runs.",
	})

	ProcessNoteEnd = NewStep[ProcessEndInput, SuccessOutput](Syscall{
		Type: "Process.NoteEnd", Domain: Process,
		Description: "Records that a process's program has ended entirely, and what happens to the process.",
	})
)

// SpawnInput is the data of Syscall.Spawn.
type SpawnInput struct {
	Target
	ChildAgentID string           `json:"child_agent_id" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the new agent, not only digits, without / : @ and #. An agent spawned by an agent gets its parent's name as a prefix: parent/child. Living siblings have different names."`
	Intent       *string          `json:"intent,omitzero" keep:"always" maxlen:"1024" doc:"What it is for, in words."`
	Role         *string          `json:"role,omitzero" keep:"always" maxlen:"256" doc:"Its part in a larger task, in words."`
	Priority     *string          `json:"priority,omitzero" keep:"always" enum:"LOW NORMAL HIGH URGENT" doc:"How urgent its work is. Default NORMAL."`
	Capabilities *SpawnCapability `json:"capabilities,omitzero" keep:"always" doc:"What it may do, at most what the spawner may. Default: the default grant, reduced to what the spawner has."`
	Cut          *bool            `json:"cut,omitzero" keep:"always" doc:"Whether what capabilities, sandbox and limits have beyond the spawner's own is left out. Default false: it is refused."`
	Kernel       *string          `json:"kernel,omitzero" keep:"always" minlen:"1" maxlen:"32" doc:"Kernel of the cluster that adds it. Default: this one."`
	Program
}

// Abroad reports whether another kernel runs the call, which is then an effect.
func (in *SpawnInput) Abroad() bool { return in.Kernel != nil }

// TakesLong reports whether the call waits for another kernel, or for its program, so that it runs alone on its connection.
func (in *SpawnInput) TakesLong() bool { return in.Abroad() || in.Program.TakesLong() }

// SpawnCapability is the grant of a spawner to its child.
type SpawnCapability struct {
	AllowedSyscalls []string           `json:"allowed_syscalls" keep:"always" minlen:"1" doc:"What it may call, as in Capability.Grant."`
	ResourceQuotas  map[string]float64 `json:"resource_quotas,omitzero" keep:"always" min:"0" doc:"Maximum units it may hold at once, by resource. Units held by processes it grants to count too, and all count against the spawner's quota."`
	ExpiresAtTick   *int64             `json:"expires_at_tick,omitzero" keep:"always" null:"allowed" min:"0" doc:"Last tick at which the grant holds; null or absent: it does not expire."`
	HTTP            *HTTPGrant         `json:"http,omitzero" keep:"always" doc:"What it may fetch with Http.Fetch, at most what the spawner may. Default: nothing."`
	Budget          *BudgetGrant       `json:"budget,omitzero" keep:"always" doc:"What it may use up, taken out of what the spawner has left. What is left of it at its end goes back. Default: it draws on the spawner's."`
}

// SpawnOutput is the answer of Syscall.Spawn.
type SpawnOutput struct {
	ChildPID     int64  `json:"child_pid" keep:"always" doc:"PID of the new process. It was never used before and never will be again."`
	ChildAgentID string `json:"child_agent_id" keep:"always" doc:"Its full name, with the name of the agent that spawned it as a prefix."`
	Kernel       string `json:"kernel,omitzero" keep:"always" doc:"Kernel of the cluster that it is a process of; absent: this one."`
}

// TerminateInput is the data of Syscall.Terminate.
type TerminateInput struct {
	Target
	TargetPID int64   `json:"target_pid" keep:"always" min:"1" doc:"Process to end, with all its descendants."`
	Reason    *string `json:"reason,omitzero" keep:"always" maxlen:"1024" doc:"Why, for the record."`
	Kernel    *string `json:"kernel,omitzero" keep:"always" minlen:"1" maxlen:"32" doc:"Kernel of the cluster that it is a process of. Default: this one."`
}

// Abroad reports whether another kernel runs the call, which is then an effect.
func (in *TerminateInput) Abroad() bool { return in.Kernel != nil }

// TakesLong reports whether the call waits for another kernel, so that it runs alone on its connection.
func (in *TerminateInput) TakesLong() bool { return in.Abroad() }

// TerminateOutput is the answer of Syscall.Terminate.
type TerminateOutput struct {
	TargetPID int64  `json:"target_pid" keep:"always" doc:"The process, which has ended."`
	Kernel    string `json:"kernel,omitzero" keep:"always" doc:"Kernel of the cluster that it was a process of; absent: this one."`
}

// AgentName returns name with what no new agent's name has replaced: only digits, which are a PID on a command line, and ":", "@" and
// "#", which separate a name from a step, a kernel and an entry there.
func AgentName(name string) string {
	name = strings.NewReplacer(":", "-", "@", "-", "#", "-").Replace(name)
	if name != "" && strings.Trim(name, "0123456789") == "" {
		return "agent-" + name
	}
	return name
}

// AttachInput is the data of Process.Attach.
type AttachInput struct {
	AgentID      string           `json:"agent_id" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the process; that of a new one is not only digits, and has no / : @ and #."`
	Capabilities *SpawnCapability `json:"capabilities,omitzero" keep:"always" doc:"What it may do. Default: the default grant for a new process; what it has for an existing one. An existing process with other capabilities is refused."`
	Via          *string          `json:"via,omitzero" keep:"always" enum:"mcp hook" doc:"The door that this connection serves, for context.via of rules. Default: how it is connected."`
}

// AttachOutput is the answer of Process.Attach.
type AttachOutput struct {
	PID     int64  `json:"pid" keep:"always" doc:"The process that the connection is from this answer on."`
	AgentID string `json:"agent_id" keep:"always" doc:"Its name."`
	Created bool   `json:"created" keep:"always" doc:"It was made by this call."`
}

// ProcessExitInput is the data of the kernel's own Process.Exit, with the processes that have ended.
type ProcessExitInput struct {
	PIDs   []int64 `json:"pids" keep:"always" doc:"Processes that end, children first."`
	Reason string  `json:"reason" keep:"always" doc:"Why they end."`
}

// ProcessPrepareInput is the data of the kernel's own Process.Prepare. It has the grant for the descriptor, because another domain makes
// the grant, and a default grant is not in the data of Syscall.Spawn.
type ProcessPrepareInput struct {
	PID           int64              `json:"pid" keep:"always" min:"1" doc:"PID that the new process will have."`
	ResourceQuota map[string]float64 `json:"resource_quota" keep:"always" min:"0" doc:"Most units that it may hold at once, by resource."`
}

// Descriptor describes a process (PROTOCOL 5).
type Descriptor struct {
	PID              int64              `json:"pid" keep:"always" doc:"Process id."`
	AgentID          string             `json:"agent_id" keep:"always" doc:"Name of the agent. Empty if the process ended so long ago that only its PID is remembered."`
	ParentPID        int64              `json:"parent_pid" keep:"always" doc:"Process that spawned it; 0 is the operator."`
	State            string             `json:"state" keep:"always" enum:"CREATED READY RUNNING BLOCKED TERMINATED" doc:"Its state."`
	Priority         string             `json:"priority" keep:"always" doc:"How urgent its work is."`
	Intent           string             `json:"intent" keep:"always" doc:"What it is for."`
	Role             string             `json:"role" keep:"always" doc:"Its part in a larger task."`
	ResourceQuota    map[string]float64 `json:"resource_quota" keep:"always" doc:"Most units that it might hold at once when it was spawned, by resource. Later grants: Capability.Get."`
	BirthTick        int64              `json:"birth_tick" keep:"always" doc:"Tick at which it was spawned."`
	ExitTick         *int64             `json:"exit_tick,omitzero" keep:"always" doc:"Tick at which it ended."`
	BlockedUntilTick *int64             `json:"blocked_until_tick,omitzero" keep:"always" doc:"Tick until which it is blocked."`
	Origin           string             `json:"origin" keep:"always" doc:"Origin of the stored data that it sees."`
	Paused           bool               `json:"paused,omitzero" keep:"always" doc:"Its program is stopped and its calls wait until the operator resumes it."`
	Identity         *Identity          `json:"identity,omitzero" keep:"always" doc:"The resource that it has adopted, see Kernel.Ingest. Children do not inherit it."`
	Hosted
}

// PauseInput is the data of Process.Pause and Process.Resume. Exactly one member is set.
type PauseInput struct {
	TargetPID *int64 `json:"target_pid,omitzero" keep:"always" min:"1" doc:"A process, with its descendants."`
	All       bool   `json:"all,omitzero" keep:"always" doc:"All agents."`
}

// PauseOutput is the answer of Process.Pause and Process.Resume.
type PauseOutput struct {
	Processes int64 `json:"processes" keep:"always" doc:"How many processes changed their state."`
}

// RestoreFilesInput is the data of Process.RestoreFiles.
type RestoreFilesInput struct {
	PID      int64   `json:"pid" keep:"always" min:"1" doc:"Process whose files are restored."`
	Snapshot string  `json:"snapshot" keep:"always" minlen:"1" maxlen:"64" doc:"Id of the copy that they are restored from."`
	Dir      string  `json:"dir" keep:"always" minlen:"1" maxlen:"4096" doc:"The directory, an absolute path."`
	Replaced *string `json:"replaced,omitzero" keep:"always" minlen:"1" maxlen:"64" doc:"Id of the copy that has what is replaced."`
	Made     int64   `json:"made" keep:"always" min:"0" doc:"How many entries are made."`
	Changed  int64   `json:"changed" keep:"always" min:"0" doc:"How many entries are changed."`
	Removed  int64   `json:"removed" keep:"always" min:"0" doc:"How many entries are removed."`
}

// RestoreFilesOutput is the answer of Process.RestoreFiles.
type RestoreFilesOutput struct {
	PID int64 `json:"pid" keep:"always" doc:"The process."`
}

// ProcessListInput is the data of Process.List.
type ProcessListInput struct {
	State *string `json:"state,omitzero" keep:"always" enum:"CREATED READY RUNNING BLOCKED TERMINATED" doc:"Only processes in this state."`
}

// ProcessListOutput is the answer of Process.List.
type ProcessListOutput struct {
	Processes []Descriptor `json:"processes" keep:"always" doc:"Processes by ascending PID."`
}

// ProcessGetInput is the data of Process.Get.
type ProcessGetInput struct {
	PID int64 `json:"pid" keep:"always" min:"1" doc:"Process to describe."`
}

// Events of Process.Subscribe. Their data is the descriptor of the process after the event.
const (
	ProcessSpawned    = "Process.Spawned"    // a new process
	ProcessStarted    = "Process.Started"    // its program runs
	ProcessRestarted  = "Process.Restarted"  // its program runs again
	ProcessExited     = "Process.Exited"     // its program has ended; exit says how
	ProcessBlocked    = "Process.Blocked"    // it is in quarantine until blocked_until_tick
	ProcessTerminated = "Process.Terminated" // it has ended, even if its program is still ending
	ProcessLagged     = "Process.Lagged"     // the data is a ProcessLag: events were missed
)

// ProcessSubscribeInput is the data of Process.Subscribe.
type ProcessSubscribeInput struct {
	PID *int64 `json:"pid,omitzero" keep:"always" min:"1" doc:"Process to follow, with its descendants: an agent itself or one of them. Default: the caller; of the operator, all."`
}

// ProcessSubscribeOutput is the answer of Process.Subscribe.
type ProcessSubscribeOutput struct {
	PID int64 `json:"pid" keep:"always" doc:"Process that is followed with its descendants; 0: all are."`
}

// ProcessWatchInput is the data of the kernel's own Process.Watch.
type ProcessWatchInput struct {
	PID   int64 `json:"pid" keep:"always" doc:"Process that is followed with its descendants; 0: all are."`
	After int64 `json:"after" keep:"always" doc:"Events that were seen or skipped."`
}

// ProcessLag is the data of Process.Lagged: the subscriber reads too slowly, and should call Process.List for the
// present state.
type ProcessLag struct {
	Missed int64 `json:"missed" keep:"always" doc:"Events that were skipped, including those of other processes."`
}

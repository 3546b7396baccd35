package schema

import "strconv"

// Delta is the domain of the memories of agents: deltas that are folded into a state.
const Delta Domain = "delta"

// CommitDeltaInput is the data of Syscall.CommitDelta.
type CommitDeltaInput struct {
	Target
	AgentID             *string            `json:"agent_id,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Agent whose memory changes. Default: the caller's."`
	IntentType          *string            `json:"intent_type,omitzero" keep:"always" maxlen:"256" doc:"Kind of intent that led to it."`
	ActionType          *string            `json:"action_type,omitzero" keep:"always" maxlen:"256" doc:"Kind of action that was taken."`
	Outcome             *string            `json:"outcome,omitzero" keep:"always" maxlen:"1024" doc:"Its outcome."`
	Changes             map[string]Value   `json:"changes,omitzero" keep:"always" doc:"JSON merge patch (RFC 7386) on the agent's state: null removes a member."`
	ChangesRef          *BlobRef           `json:"changesRef,omitzero" keep:"always" doc:"The changes, by reference: a file in the blob directory that holds one JSON object of at most 1000000 bytes."`
	ResourceChanges     map[string]float64 `json:"resource_changes,omitzero" keep:"always" doc:"Gains and losses, by resource; they are summed."`
	RelationshipChanges map[string]float64 `json:"relationship_changes,omitzero" keep:"always" doc:"Changes of relationships, by agent; they are summed."`
	GovernanceViolation *bool              `json:"governance_violation,omitzero" keep:"always" doc:"Whether a rule was broken; violations are counted."`
}

// Reference implements Referring. The changes are optional.
func (in *CommitDeltaInput) Reference() (member string, given bool, ref *BlobRef) {
	return "changes", in.Changes != nil || in.ChangesRef == nil, in.ChangesRef
}

// CommitDeltaOutput is the answer of Syscall.CommitDelta.
type CommitDeltaOutput struct {
	AgentID  string `json:"agent_id" keep:"always" doc:"The agent."`
	DeltaSeq int64  `json:"delta_seq" keep:"always" doc:"Number of the delta among the agent's, from 1, never used again."`
}

// RollbackInput is the data of Syscall.Rollback.
type RollbackInput struct {
	Target
	ToTick  int64   `json:"to_tick" keep:"always" min:"0" doc:"Deltas of later ticks are dropped."`
	AgentID *string `json:"agent_id,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Agent to roll back. Default: the caller's."`
}

// RollbackOutput is the answer of Syscall.Rollback.
type RollbackOutput struct {
	RolledBackTo int64 `json:"rolled_back_to" keep:"always" doc:"The tick."`
	Dropped      int64 `json:"dropped" keep:"always" doc:"Number of deltas that were dropped."`
}

// CheckpointInput is the data of Syscall.Checkpoint.
type CheckpointInput struct {
	Target
	AgentID *string `json:"agent_id,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Agent whose deltas are counted. Default: the caller's; the operator's call counts all."`
}

// CheckpointOutput is the answer of Syscall.Checkpoint.
type CheckpointOutput struct {
	TotalDeltas  int64 `json:"total_deltas" keep:"always" doc:"Number of deltas that are in force."`
	CheckpointID int64 `json:"checkpoint_id" keep:"always" doc:"Number of the checkpoint, from 1, never used again."`
}

// GetStateInput is the data of Syscall.GetState.
type GetStateInput struct {
	Target
	TargetPID *int64 `json:"target_pid,omitzero" keep:"always" min:"1" doc:"Process to describe. Default: the caller."`
	AtTick    *int64 `json:"at_tick,omitzero" keep:"always" min:"0" doc:"Fold memory up to and including this tick. Default: all ticks."`
}

// GetStateOutput is the answer of Syscall.GetState.
type GetStateOutput struct {
	Descriptor
	Memory *FoldedMemory `json:"memory,omitzero" keep:"always" doc:"The agent's memory. Absent if it has none."`
}

// AppendJSON appends the answer with the state's values as they were written.
func (o GetStateOutput) AppendJSON(dst []byte) []byte {
	dst = appendValue(dst, o.Descriptor)
	if o.Memory == nil {
		return dst
	}
	return append(o.Memory.AppendJSON(append(dst[:len(dst)-1], `,"memory":`...)), '}')
}

// FoldedMemory is the state that results from an agent's deltas.
type FoldedMemory struct {
	State         Value              `json:"state" keep:"always" doc:"The merge patches of the deltas, applied in order."`
	Resources     map[string]float64 `json:"resources" keep:"always" doc:"Sums of the resource changes."`
	Relationships map[string]float64 `json:"relationships" keep:"always" doc:"Sums of the relationship changes."`
	Deltas        int64              `json:"deltas" keep:"always" doc:"Number of deltas folded."`
	Violations    int64              `json:"violations" keep:"always" doc:"Number of those that broke a rule."`
}

// AppendJSON appends the fold with the state's values as they were written.
func (m *FoldedMemory) AppendJSON(dst []byte) []byte {
	dst = append(append(dst, `{"state":`...), m.State...)
	dst = appendValue(append(dst, `,"resources":`...), m.Resources)
	dst = appendValue(append(dst, `,"relationships":`...), m.Relationships)
	dst = strconv.AppendInt(append(dst, `,"deltas":`...), m.Deltas, 10)
	dst = strconv.AppendInt(append(dst, `,"violations":`...), m.Violations, 10)
	return append(dst, '}')
}

// DeltaDropInput is the data of the kernel's own Delta.Drop, which rolls back the named agent.
type DeltaDropInput struct {
	AgentID string `json:"agent_id" keep:"always" doc:"Agent whose deltas are dropped."`
	ToTick  int64  `json:"to_tick" keep:"always" min:"0" doc:"Deltas of later ticks are dropped."`
}

// The syscalls of this file.
var (
	SyscallCommitDelta = NewCommand[CommitDeltaInput, CommitDeltaOutput](Syscall{
		Type: "Syscall.CommitDelta", Code: "SYS_COMMIT_DELTA", Domain: Delta,
		Script:      "scripts/delta.txtar",
		Description: "Adds a delta to an agent's memory, at the kernel's tick.",
	})

	SyscallRollback = NewCommand[RollbackInput, RollbackOutput](Syscall{
		Type: "Syscall.Rollback", Code: "SYS_ROLLBACK", Domain: Delta,
		Script:      "scripts/delta.txtar",
		Description: "Drops the deltas that an agent's memory gained after a tick. The audit log keeps both.",
	})

	DeltaDrop = NewStep[DeltaDropInput, SuccessOutput](Syscall{
		Type: "Delta.Drop", Domain: Delta,
		Description: "Runs a rollback.",
	})

	SyscallCheckpoint = NewCommand[CheckpointInput, CheckpointOutput](Syscall{
		Type: "Syscall.Checkpoint", Code: "SYS_CHECKPOINT", Domain: Delta,
		Script:      "scripts/delta.txtar",
		Description: "Numbers a checkpoint of agent memory and counts the deltas in force.",
	})

	SyscallGetState = NewQuery[GetStateInput, GetStateOutput](Syscall{
		Type: "Syscall.GetState", Code: "SYS_GET_STATE", Domain: Delta, Alone: true,
		Script:      "scripts/delta.txtar",
		Description: "Describes a process, with its agent's memory folded up to a tick. An agent may read its own state only.",
	})
)

package schema

// AuditShowInput is the data of Audit.Show.
type AuditShowInput struct {
	Seq     *int64  `json:"seq,omitzero" keep:"always" min:"1" doc:"Number of the entry. This or key is required."`
	Key     *string `json:"key,omitzero" keep:"always" minlen:"1" doc:"A key of the memory, such as notes/1: the last command that has changed it is shown."`
	Effects *bool   `json:"effects,omitzero" keep:"always" doc:"Whether to look for what the call has caused. Default true."`
}

// AuditShowOutput is the answer of Audit.Show. A row has the data of its message if the caller may see it: the operator sees all data,
// an agent only the data of its own calls without values of the memory, because Memory.Get decides who may read them.
type AuditShowOutput struct {
	Entry      AuditEntry     `json:"entry" keep:"always" doc:"The call, as Audit.Log shows it."`
	Origin     string         `json:"origin" keep:"always" doc:"Origin of the stored data that the call saw."`
	Conn       string         `json:"conn" keep:"always" doc:"Connection that it came in on: a-PID.RUN is the channel of a program, c-N a socket; inline, kernel, recovery; or a job."`
	Processes  []ShownProcess `json:"processes,omitzero" keep:"always" doc:"The process that called, then its ancestors, as far as the caller may see and the kernel remembers them; absent for the operator."`
	Authority  []ShownToken   `json:"authority,omitzero" keep:"always" doc:"The tokens in force then: the process's, its granter's, and so on, up to a grant of the operator's. Absent for the operator."`
	Approval   *ShownApproval `json:"approval,omitzero" keep:"always" doc:"The approval that let the call through; absent: no rule asked."`
	Rule       *ShownRule     `json:"rule,omitzero" keep:"always" doc:"The rule of the policy that refused the call; absent: none did."`
	CauseID    string         `json:"cause_id,omitzero" keep:"always" doc:"Id of the message that is the cause, whether it was found or not."`
	CauseLater int64          `json:"cause_later,omitzero" keep:"always" doc:"Entry of the call that the message names as its cause although it was made later, so that it is none; absent: it names none such."`
	Related    []RelatedCall  `json:"related,omitzero" keep:"always" doc:"Calls that belong to it, as far as the caller may see them."`
	More       bool           `json:"more,omitzero" keep:"always" doc:"Whether it has caused more than is in related: Audit.Log with caused_by lists all."`
	Repeats    int64          `json:"repeats,omitzero" keep:"always" doc:"The entry whose outcome was given again, since the call repeats its idempotency key; absent: the call ran."`
	Proof      ShownProof     `json:"proof" keep:"always" doc:"What proves the entry."`
	Archived   *Archived      `json:"archived,omitzero" keep:"always" doc:"Entries whose archive is not available: related calls among them, such as the grant of the token, are not shown. Absent: there are none."`
}

// RelatedCall is a call that is related to the shown call.
type RelatedCall struct {
	Relation string     `json:"relation" keep:"always" enum:"spawned cause effect" doc:"spawned: it made the process that called. cause: it caused the call, or sent the first message that was received. effect: the call caused it; at most 20, oldest first."`
	Claimed  bool       `json:"claimed,omitzero" keep:"always" doc:"Whether only a message says so. Absent: the kernel knows it."`
	Entry    AuditEntry `json:"entry" keep:"always" doc:"Its row."`
}

// The values of RelatedCall.Relation.
const (
	RelationSpawned = "spawned"
	RelationCause   = "cause"
	RelationEffect  = "effect"
)

// Call returns the first call of a relation, nil if there is none. What the kernel knows precedes what a message claims.
func (o *AuditShowOutput) Call(relation string) *RelatedCall {
	for i := range o.Related {
		if o.Related[i].Relation == relation {
			return &o.Related[i]
		}
	}
	return nil
}

// ShownProcess is a process of AuditShowOutput.
type ShownProcess struct {
	PID     int64  `json:"pid" keep:"always" doc:"The process."`
	AgentID string `json:"agent_id" keep:"always" doc:"Its name; empty if only its PID is remembered."`
	Intent  string `json:"intent,omitzero" keep:"always" doc:"What it is for."`
}

// ShownToken is the token of a process at the time of a call.
type ShownToken struct {
	PID   int64  `json:"pid" keep:"always" doc:"Process that held it."`
	Seq   int64  `json:"seq" keep:"always" doc:"The last entry that changed or removed it."`
	Type  string `json:"type" keep:"always" doc:"Type of that entry's call."`
	By    int64  `json:"by" keep:"always" doc:"Process that made that call; 0 is the operator or the kernel."`
	Token *Token `json:"token,omitzero" keep:"always" doc:"The token; absent: it was removed."`
}

// ShownApproval is the approval that allowed a call.
type ShownApproval struct {
	Approval  string `json:"approval" keep:"always" doc:"The question, as Approval.List names it."`
	Rule      string `json:"rule" keep:"always" doc:"The rule that asked."`
	Policy    string `json:"policy" keep:"always" doc:"SHA-256 over the files of the policy."`
	Exhausted string `json:"exhausted,omitzero" keep:"always" doc:"The kind of budget that the call exceeded, if the rule asks about that."`
	Advisory  bool   `json:"advisory,omitzero" keep:"always" doc:"The approval does not prove that a person gave it: the agent was not confined."`
}

// ShownRule is the rule that refused a call.
type ShownRule struct {
	Rule   string `json:"rule" keep:"always" doc:"Its name."`
	Policy string `json:"policy,omitzero" keep:"always" doc:"SHA-256 over the files of the policy."`
	At     string `json:"at,omitzero" keep:"always" doc:"Where it is, as FILE:LINE. Operator only."`
}

// ShownProof is the proof of an entry.
type ShownProof struct {
	Seq        int64            `json:"seq" keep:"always" doc:"Number of the entry."`
	Hash       string           `json:"hash" keep:"always" doc:"SHA-256 of its line in the journal, hexadecimal."`
	Prev       string           `json:"prev" keep:"always" doc:"SHA-256 of the line before it, which is part of it."`
	Checkpoint *ShownCheckpoint `json:"checkpoint,omitzero" keep:"always" doc:"The first signed checkpoint that covers it; absent: it is not signed yet."`
}

// ShownCheckpoint is a signed checkpoint of the journal.
type ShownCheckpoint struct {
	Seq  int64  `json:"seq" keep:"always" doc:"The entry that it was signed at: it covers all up to there."`
	Time int64  `json:"time" keep:"always" doc:"When, in Unix milliseconds."`
	Key  string `json:"key" keep:"always" doc:"The host key that signed it, as a line of authorized_keys."`
}

// The syscalls of this file.
var (
	AuditShow = NewQuery[AuditShowInput, AuditShowOutput](Syscall{
		Type: "Audit.Show", Domain: Audit, Alone: true,
		Script:      "scripts/record.txtar",
		Description: "Shows one call in full: who made it, on whose authority, its data and outcome, its cause, what it caused, the approval or the rule that decided it, and what proves the entry. An agent is shown its own calls and its descendants'.",
	})
)

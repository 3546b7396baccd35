package schema

// Audit is the domain of the audit log.
const Audit Domain = "audit"

// AuditLogInput is the data of Audit.Log. The outcome of an effect has the type and PID of the call.
type AuditLogInput struct {
	PID         *int64  `json:"pid,omitzero" keep:"always" min:"0" doc:"Only calls of this process."`
	Type        *string `json:"type,omitzero" keep:"always" minlen:"1" doc:"Only calls of this syscall, such as Memory.Set."`
	Correlation *string `json:"correlation,omitzero" keep:"always" minlen:"1" doc:"Only calls with this correlation."`
	ID          *string `json:"id,omitzero" keep:"always" minlen:"1" doc:"Only calls whose message has this id."`
	CausedBy    *string `json:"caused_by,omitzero" keep:"always" minlen:"1" doc:"Only calls that name the message with this id as their causation."`
	Key         *string `json:"key,omitzero" keep:"always" minlen:"1" doc:"Only commands about this key of the memory, such as notes/1, in the origin that the call sees. A leading slash makes no difference."`
	Denied      *bool   `json:"denied,omitzero" keep:"always" doc:"true: only calls that were refused by capability, quota or policy."`
	SinceTime   *int64  `json:"since_time,omitzero" keep:"always" min:"0" doc:"Only calls at or after: Unix epoch, milliseconds."`
	UntilTime   *int64  `json:"until_time,omitzero" keep:"always" min:"0" doc:"Only calls at or before: Unix epoch, milliseconds."`
	Request     *bool   `json:"request,omitzero" keep:"always" doc:"Whether to add the journaled data of each message. Operator only."`

	SinceSeq *int64 `json:"since_seq,omitzero" keep:"always" min:"0" doc:"Only entries after this one: next of the reply before. Default: from the first."`
	Limit    *int64 `json:"limit,omitzero" keep:"always" min:"1" max:"1000" doc:"Most entries to return, 1 to 1000. Default 50. Fewer come if the line would be too long."`
}

// AuditLogOutput is the answer of Audit.Log.
type AuditLogOutput struct {
	Entries []AuditEntry `json:"entries" keep:"always" doc:"Entries of the journal, oldest first. A call with an effect outside the kernel has one entry here: its end, or its intent while it is running."`
	Next    int64        `json:"next,omitzero" keep:"always" doc:"There may be more: since_seq of the next page."`

	Archived *Archived `json:"archived,omitzero" keep:"always" doc:"Entries of the range that are archived; absent: there are none."`
}

// Archived describes the entries that were moved out of the journal.
type Archived struct {
	First     int64  `json:"first" keep:"always" doc:"The first of them, always 1."`
	Last      int64  `json:"last" keep:"always" doc:"The last of them."`
	Directory string `json:"directory,omitzero" keep:"always" doc:"Where the latest of them were moved to, as the operator sees it."`
}

// AuditEntry is one syscall and its outcome (CAP 4). All members except code, intent and request are always present,
// as in CAP.
type AuditEntry struct {
	Success     bool      `json:"success" keep:"always" doc:"Whether it succeeded."`
	SyscallCode string    `json:"syscall_code" keep:"always" doc:"CAP's code, or the type of a syscall that has none."`
	PID         int64     `json:"pid" keep:"always" doc:"Process that the call was made as."`
	Tick        int64     `json:"tick" keep:"always" doc:"The kernel's tick at the call, or at its end if the call has an intent."`
	Payload     Value     `json:"payload" keep:"always" doc:"What a command answered; a query's answer is not kept."`
	Error       MaybeText `json:"error" keep:"always" doc:"Why it failed; null: it succeeded."`
	LatencyUS   int64     `json:"latency_us" keep:"always" doc:"How long it took, microseconds."`
	Seq         int64     `json:"seq" keep:"always" doc:"Number of the entry."`
	Type        string    `json:"type" keep:"always" doc:"Type of the message."`
	Time        int64     `json:"time" keep:"always" doc:"When the call was made, or ended if it has an intent, in Unix milliseconds."`
	ID          string    `json:"id" keep:"always" doc:"Id of the message."`
	Correlation MaybeText `json:"correlation" keep:"always" doc:"Its correlation; null if it has none."`
	Causation   MaybeText `json:"causation" keep:"always" doc:"Id of the message that caused it; null if unknown."`
	Claimed     bool      `json:"claimed,omitzero" keep:"always" doc:"Whether only the message says what caused it. Absent: the kernel knows it."`
	Status      string    `json:"status" keep:"always" enum:"ok denied failed running unknown" doc:"The verdict: ok; denied by capability or quota; failed; running: begun outside the kernel and not ended; unknown: begun, and the kernel stopped, or could not record the end."`
	Code        int64     `json:"code,omitzero" keep:"always" doc:"Code of the error; absent: there is none."`
	ErrorID     string    `json:"error_id,omitzero" keep:"always" doc:"Id of the error, as listed in docs/errors.md. Absent if there was no error, or the entry is older than error ids."`
	Intent      int64     `json:"intent,omitzero" keep:"always" doc:"For a call with an effect outside the kernel: the entry that was written before the effect began. The row itself is the end, with the outcome."`
	Request     Value     `json:"request,omitzero" keep:"always" doc:"Data of the message without its secrets, if it was asked for."`
}

// The values of AuditEntry.Status.
const (
	StatusOK      = "ok"
	StatusDenied  = "denied"
	StatusFailed  = "failed"
	StatusRunning = "running"
	StatusUnknown = "unknown"
)

// AuditMetricsInput is the data of Audit.Metrics.
type AuditMetricsInput struct{}

// AuditMetricsOutput is the answer of Audit.Metrics (CAP 6), counted over the whole journal.
type AuditMetricsOutput struct {
	TotalCalls   int64                   `json:"total_calls" keep:"always" doc:"All syscalls that have ended. The kernel's own, such as Capability.Endow, are in the log but not counted."`
	DeniedCalls  int64                   `json:"denied_calls" keep:"always" doc:"Refused by capability or quota."`
	ByCode       map[string]int64        `json:"by_code" keep:"always" doc:"Syscalls by CAP code, or by type if there is no code. The first 1000 registered names are counted by name, further ones as Syscall.Invoke."`
	DeniedByCode map[string]int64        `json:"denied_by_code" keep:"always" doc:"Refusals, by the same keys."`
	AvgLatencyUS float64                 `json:"avg_latency_us" keep:"always" doc:"Mean latency, microseconds."`
	Latency      map[string]LatencyQuant `json:"latency" keep:"always" doc:"Quantiles by type."`
	Refusing     string                  `json:"refusing,omitzero" keep:"always" doc:"Why the journal cannot be written, such as that its disk is full: commands are refused until it can."`
	Warnings     []string                `json:"warnings,omitzero" keep:"always" doc:"Problems that need the operator, such as a key file whose mode became unsafe. Operator only."`
}

// LatencyQuant has the latency quantiles of the calls of one type, with a relative error of at most 1/8.
type LatencyQuant struct {
	P50US int64 `json:"p50_us" keep:"always" doc:"Half of them took no longer, microseconds."`
	P99US int64 `json:"p99_us" keep:"always" doc:"99 of 100 took no longer, microseconds."`
}

// AuditVerifyInput is the data of Audit.Verify.
type AuditVerifyInput struct{}

// AuditVerifyOutput is the answer of Audit.Verify.
type AuditVerifyOutput struct {
	OK      bool   `json:"ok" keep:"always" doc:"Whether the journal is as it was written."`
	Entries int64  `json:"entries" keep:"always" doc:"Entries that were checked."`
	Head    string `json:"head" keep:"always" doc:"SHA-256 of the last entry's line, hexadecimal."`
	Broken  string `json:"broken,omitzero" keep:"always" doc:"Where it is broken, and how."`

	Archived *Archived `json:"archived,omitzero" keep:"always" doc:"Entries that were not checked, since they are archived; absent: there are none."`
}

// AuditArchiveInput is the data of Audit.Archive.
type AuditArchiveInput struct {
	Directory  string `json:"directory" keep:"always" minlen:"1" doc:"Where the segments are moved to: an absolute path, of a new or empty directory, or of the one that has what was archived before."`
	BeforeSeq  *int64 `json:"before_seq,omitzero" keep:"always" min:"1" doc:"Only entries before this one. Either this or before_time is required."`
	BeforeTime *int64 `json:"before_time,omitzero" keep:"always" min:"0" doc:"Only entries from before: Unix epoch, milliseconds."`
}

// AuditArchiveOutput is the answer of Audit.Archive.
type AuditArchiveOutput struct {
	Segments  int64  `json:"segments" keep:"always" doc:"How many segments were moved; 0: there was nothing to move."`
	Bytes     int64  `json:"bytes" keep:"always" doc:"Their size together."`
	First     int64  `json:"first,omitzero" keep:"always" doc:"The first entry that was moved."`
	Last      int64  `json:"last,omitzero" keep:"always" doc:"The last one."`
	Hash      string `json:"hash,omitzero" keep:"always" doc:"SHA-256 of its line, hexadecimal: the journal's next entry chains to it."`
	Directory string `json:"directory" keep:"always" doc:"Where they are."`
	State     int64  `json:"state_bytes,omitzero" keep:"always" doc:"Size of the state that stands in for them."`
}

// AuditRecorded is the event with which Audit.Subscribe pushes an entry. Its data is an AuditEntry.
const AuditRecorded = "Audit.Recorded"

// AuditSubscribeInput is the data of Audit.Subscribe.
type AuditSubscribeInput struct {
	SinceSeq *int64   `json:"since_seq,omitzero" keep:"always" min:"0" doc:"Number of the first entry to push. Default: the one after the subscription's own entry."`
	PID      *int64   `json:"pid,omitzero" keep:"always" min:"0" doc:"Only calls of this process."`
	Types    []string `json:"types,omitzero" keep:"always" doc:"Only calls of these syscalls: a type such as Memory.Set, or a pattern such as Memory.*."`
	Request  *bool    `json:"request,omitzero" keep:"always" doc:"Whether to add the data of each message, as far as it is journaled. Only the operator may ask for it."`
}

// AuditSubscribeOutput is the answer of Audit.Subscribe. Instance, epoch and seq together identify an entry among the entries of
// all kernels.
type AuditSubscribeOutput struct {
	Success  bool    `json:"success" keep:"always" doc:"Always true."`
	Instance string  `json:"instance,omitzero" keep:"always" doc:"Name of the record, made at the kernel's first start. Absent as long as no start could be recorded."`
	Epochs   []Epoch `json:"epochs,omitzero" keep:"always" doc:"Epochs of the record, oldest first. A restored copy begins another."`
}

// AuditWatchInput is the data of the kernel's own Audit.Watch.
type AuditWatchInput struct {
	From  int64    `json:"from" keep:"always" doc:"Number of the first entry to push; 0 is the one after the subscription's own entry."`
	PID   *int64   `json:"pid,omitzero" keep:"always" doc:"Only calls of this process."`
	Types []string `json:"types,omitzero" keep:"always" doc:"Only calls of these syscalls."`

	Request bool `json:"request,omitzero" keep:"always" doc:"Whether each row has the data of its message."`
}

// AuditRedactedInput is the data of the kernel's own Audit.Redacted.
type AuditRedactedInput struct {
	Seq    int64  `json:"seq" keep:"always" min:"1" doc:"The entry whose line is rewritten."`
	Member string `json:"member" keep:"always" doc:"The member that is removed from it, as a JSON pointer into the line."`
	Old    string `json:"old" keep:"always" doc:"SHA-256 of the line as it was appended, hexadecimal: its hash in the chain."`
	New    string `json:"new" keep:"always" doc:"SHA-256 of the line without the member, hexadecimal."`
}

// AuditRedactInput is the data of Audit.Redact.
type AuditRedactInput struct {
	Seq    int64   `json:"seq" keep:"always" min:"1" doc:"Number of the entry."`
	Member string  `json:"member" keep:"always" minlen:"1" doc:"What is removed, as a JSON pointer into the line, such as /request/data/value. The record keeps the pointer."`
	Hash   *string `json:"hash,omitzero" keep:"always" doc:"SHA-256 of the entry in the chain, hexadecimal: refused if the entry has another. This proves that the caller and the kernel mean the same record."`
}

// AuditRedactOutput is the answer of Audit.Redact, and what pwos audit redact prints.
type AuditRedactOutput struct {
	Seq     int64    `json:"seq" keep:"always" doc:"The entry."`
	Member  string   `json:"member" keep:"always" doc:"What was removed from it."`
	By      int64    `json:"by,omitzero" keep:"always" doc:"The entry Audit.Redacted that vouches for that; absent: the line was not changed."`
	Already bool     `json:"already" keep:"always" doc:"Whether the member was redacted before."`
	Also    []int64  `json:"also" keep:"always" doc:"Other entries that have the same value, ascending, 100 at most: redact these too."`
	More    bool     `json:"more" keep:"always" doc:"Whether there are more of them."`
	Cluster bool     `json:"cluster" keep:"always" doc:"Whether a copy of the journal on the cluster's bus keeps the value."`
	Blobs   int64    `json:"blobs_removed" keep:"always" doc:"How many blobs were removed, since they had the value and nothing else."`
	Steps   int64    `json:"steps,omitzero" keep:"always" doc:"How many contents of files, notes of steps and prompts had the value in the stores of steps: it was removed there."`
	Left    []string `json:"blobs_left" keep:"always" doc:"Paths of blobs that have the value among other data, or are being read: remove them, or wait until they expire. A directory is one that could not be looked through."`
}

// The syscalls of this file.
var (
	AuditLog = NewQuery[AuditLogInput, AuditLogOutput](Syscall{
		Type: "Audit.Log", Domain: Audit, Alone: true,
		Script:      "scripts/record.txtar",
		Description: "Returns entries of the audit log.",
	})

	AuditMetrics = NewQuery[AuditMetricsInput, AuditMetricsOutput](Syscall{
		Type: "Audit.Metrics", Domain: Audit, Alone: true,
		Script:      "scripts/record.txtar",
		Description: "Counts syscalls and refusals, and says how long syscalls took, over the whole journal.",
	})

	AuditVerify = NewQuery[AuditVerifyInput, AuditVerifyOutput](Syscall{
		Type: "Audit.Verify", Domain: Audit, Alone: true,
		Script:      "scripts/record.txtar",
		Description: "Checks the whole journal: the chain, and the signed checkpoints.",
	})

	AuditSubscribe = NewCommand[AuditSubscribeInput, AuditSubscribeOutput](Syscall{
		Type: "Audit.Subscribe", Domain: Audit,
		Script:      "scripts/record.txtar",
		Description: "Pushes the entries of the audit log on this connection until it closes, in order and without gaps. Each event Audit.Recorded has one row of Audit.Log. Pushes are not journaled.",
	})

	AuditRedacted = NewStep[AuditRedactedInput, AuditRedactedInput](Syscall{
		Type: "Audit.Redacted", Domain: Audit,
		Description: "Vouches for a line of the journal that is rewritten without one of its members: the chain keeps the hash that the line had.",
	})

	AuditArchive = NewEffect[AuditArchiveInput, AuditArchiveOutput](Syscall{
		Type: "Audit.Archive", Domain: Audit, Grant: OperatorOnly,
		Script:      "scripts/archive.txtar",
		Description: "Moves the oldest segments of the journal to a directory. A signed anchor, with the state that their entries have made, stands in for them. Only whole segments are moved.",
	}, Syscall{
		Type:        "Audit.Archived",
		Description: "Ends an Audit.Archive: records what was moved.",
	})

	AuditRedact = NewEffect[AuditRedactInput, AuditRedactOutput](Syscall{
		Type: "Audit.Redact", Domain: Audit, Grant: OperatorOnly,
		Script:      "scripts/redactlive.txtar",
		Description: "Removes a member from an entry of the journal, and its value from the state, the snapshots, the index, the blobs and the stores of steps. An entry Audit.Redacted vouches for the line.",
	}, Syscall{
		Type:        "Audit.Rewritten",
		Description: "Ends an Audit.Redact: records what was removed.",
	})

	AuditWatch = NewQuestion[AuditWatchInput, SuccessOutput](Syscall{
		Type: "Audit.Watch", Domain: Audit,
		Description: "Finds the entries written since the last push to a subscriber.",
	})
)

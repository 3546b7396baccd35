package fault

// The ids, by the domain that the failure belongs to.
const (
	// The wire: frames and envelopes.
	WireInvalidJSON    ID = "wire.invalid_json"
	WireSchema         ID = "wire.schema"
	WireTooLong        ID = "wire.too_long"
	WireUnknownSyscall ID = "wire.unknown_syscall"
	WireInvalidInput   ID = "wire.invalid_input"
	WireAnswerTooLong  ID = "wire.answer_too_long"
	WireUnexpected     ID = "wire.unexpected"

	// The syscall table.
	SyscallNotFound ID = "syscall.not_found"

	// Registered syscalls.
	SyscallTaken    ID = "syscall.taken"
	SyscallTooMany  ID = "syscall.too_many"
	SyscallTooOften ID = "syscall.too_often"
	SyscallBadCode  ID = "syscall.bad_code"
	ProviderAway    ID = "provider.away"
	ProviderDied    ID = "provider.died"
	ProviderTimeout ID = "provider.timeout"
	ProviderFailed  ID = "provider.failed"
	// ProviderBadAnswer is the answer of a provider that does not fit its registered schema.
	ProviderBadAnswer ID = "provider.bad_answer"
	ProviderLimit     ID = "provider.limit"
	ProviderItself    ID = "provider.waits_for_itself"
	ProviderNoCall    ID = "provider.no_such_call"

	// Authentication.
	AuthRequired  ID = "auth.required"
	AuthSignature ID = "auth.bad_signature"
	AuthAgain     ID = "auth.already_authenticated"
	AuthBusy      ID = "auth.busy"
	AuthMalformed ID = "auth.malformed"
	AuthNamespace ID = "auth.wrong_namespace"
	AuthHash      ID = "auth.wrong_hash"
	AuthKeyType   ID = "auth.refused_key"
	AuthNoSuchKey ID = "auth.unknown_key"
	AuthExpired   ID = "auth.expired_key"
	AuthWrongKey  ID = "auth.wrong_key"
	AuthNoTouch   ID = "auth.not_touched"
	AuthSpent     ID = "auth.spent_challenge"
	AuthLate      ID = "auth.late"
	AuthNoKeys    ID = "auth.no_authorized_keys"
	AuthGrant     ID = "auth.refused_grant"
	AuthPeer      ID = "auth.foreign_peer"

	// Errors of clients at a login.
	AuthLogin       ID = "auth.login_failed"
	AuthHost        ID = "auth.host_not_proven"
	AuthHostChanged ID = "auth.host_key_changed"
	AuthDowngraded  ID = "auth.downgraded"
	AuthNoIdentity  ID = "auth.no_identity"
	AuthKeyFile     ID = "auth.bad_key_file"
	AuthAgentSilent ID = "auth.agent_silent"
	AuthAgentNo     ID = "auth.agent_refused"
	AuthAgentLied   ID = "auth.agent_lied"

	// Errors of clients about sealing and exports.
	SealNoKey         ID = "seal.no_key"
	SealBroken        ID = "seal.broken"
	SealSilent        ID = "seal.agent_silent"
	ExportBusy        ID = "export.busy"
	ExportOtherRecord ID = "export.other_record"
	ExportUnreadable  ID = "export.unreadable"
	ExportRefused     ID = "export.refused"
	ExportUndelivered ID = "export.undelivered"

	// The places of a kernel, its state and its start.
	PlaceUnsafe       ID = "place.unsafe"
	PlaceOccupied     ID = "place.occupied"
	PlaceServed       ID = "place.served"
	PlaceLocked       ID = "place.locked"
	PlacePathTooLong  ID = "place.path_too_long"
	PlaceInside       ID = "place.kernel_inside"
	PlaceNotThere     ID = "place.not_there"
	HomeInUse         ID = "home.in_use"
	ConfigInvalid     ID = "config.invalid"
	StateDamaged      ID = "state.damaged"
	StateCopied       ID = "state.copied"
	StateForm         ID = "state.form"
	DaemonNotRunning  ID = "daemon.not_running"
	DaemonNoAnswer    ID = "daemon.no_answer"
	DaemonUnreachable ID = "daemon.unreachable"
	DaemonLaunch      ID = "daemon.launch_failed"
	DaemonHungUp      ID = "daemon.hung_up"
	DaemonInside      ID = "daemon.inside_agent"
	CallTimeout       ID = "call.timeout"
	UsageInvalid      ID = "usage.invalid"

	// What a caller may do.
	CapabilityDenied       ID = "capability.denied"
	CapabilityExpired      ID = "capability.expired"
	CapabilityOperatorOnly ID = "capability.operator_only"
	CapabilityNotYours     ID = "capability.not_yours"
	CapabilityTooMuch      ID = "capability.too_much"
	CapabilityOtherGranter ID = "capability.other_granter"
	CapabilityNotFound     ID = "capability.not_found"

	// Idempotency keys.
	IdempotencyOtherBody ID = "idempotency.other_body"
	IdempotencyUnderWay  ID = "idempotency.under_way"
	IdempotencyTooLong   ID = "idempotency.too_long"
	IdempotencyTooMany   ID = "idempotency.too_many"

	// The kernel itself.
	KernelInternal     ID = "kernel.internal"
	KernelInterrupted  ID = "kernel.interrupted"
	KernelStopping     ID = "kernel.stopping"
	KernelUnsupported  ID = "kernel.unsupported"
	KernelMismatch     ID = "kernel.mismatch"
	AuditNotFound      ID = "audit.not_found"
	AuditNoMember      ID = "audit.no_member"
	AuditKept          ID = "audit.kept"
	AuditInUse         ID = "audit.in_use"
	JournalUnavailable ID = "journal.unavailable"
	JournalLost        ID = "journal.lost"
	JournalArchived    ID = "journal.archived"
	JournalForeign     ID = "journal.foreign"
	JournalPlace       ID = "journal.archive_place"
	JournalUncopied    ID = "journal.uncopied"

	// BackupBroken is a file that is no whole backup.
	BackupBroken     ID = "backup.broken"
	BackupPassphrase ID = "backup.passphrase"
	FileExists       ID = "file.exists"
	ClockAhead       ID = "clock.ahead"
	CallCancelled    ID = "call.cancelled"
	CallTooMany      ID = "call.too_many"

	// Connections and subscriptions.
	ConnectionTooMany   ID = "connection.too_many"
	ConnectionFollows   ID = "connection.subscribed"
	SubscriptionTooMany ID = "subscription.too_many"

	// Policy and approvals.
	BudgetExhausted ID = "budget.exhausted"
	RoleDenied      ID = "role.denied"
	ProcessPaused   ID = "process.paused"
	PolicyDenied    ID = "policy.denied"
	PolicyFailed    ID = "policy.failed"
	PolicyAsks      ID = "policy.needs_approval"
	PolicyInvalid   ID = "policy.invalid"
	ApprovalPending ID = "approval.pending"
	ApprovalRefused ID = "approval.refused"
	ApprovalTooMany ID = "approval.too_many"
	ApprovalUnknown ID = "approval.not_found"
	ApprovalOver    ID = "approval.over"
	ApprovalOther   ID = "approval.other_digest"

	// Memory.
	MemoryNotFound ID = "memory.not_found"
	MemoryBadKey   ID = "memory.bad_key"
	MemoryReadOnly ID = "memory.read_only"
	MemoryUnsealed ID = "memory.unsealed"
	MemoryChanged  ID = "memory.changed"

	// Processes and programs.
	ProcessNotFound    ID = "process.not_found"
	ProcessNeverWas    ID = "process.never_was"
	ProcessEnded       ID = "process.ended"
	ProcessIsEnded     ID = "process.is_ended"
	ProcessNameTaken   ID = "process.name_taken"
	ProcessNotStarted  ID = "process.not_started"
	ProcessNotRunnable ID = "process.not_executable"
	ProcessTaken       ID = "process.not_attachable"
	ProcessOtherGrant  ID = "process.other_capabilities"
	ProcessAlive       ID = "process.alive"
	SandboxTooWide     ID = "sandbox.too_wide"

	// Messages between processes.
	IpcMailboxFull ID = "ipc.mailbox_full"
	IpcNoMailbox   ID = "ipc.no_mailbox"
	IpcBlocked     ID = "ipc.blocked"
	IpcFollowed    ID = "ipc.followed"

	// Other kernels.
	ClusterOff      ID = "cluster.off"
	ClusterBus      ID = "cluster.bus"
	ClusterNoStream ID = "cluster.no_stream"
	ClusterNoKernel ID = "cluster.unknown_kernel"
	ClusterMembers  ID = "cluster.members"
	ClusterSelf     ID = "cluster.self"
	ClusterTooLarge ID = "cluster.too_large"
	ClusterFull     ID = "cluster.outbox_full"
	ClusterRequest  ID = "cluster.request"
	ClusterReplayed ID = "cluster.replayed"
	ClusterSigned   ID = "cluster.signature"
	ClusterAway     ID = "cluster.away"
	ClusterUnknown  ID = "cluster.unknown_outcome"
	ClusterFenced   ID = "cluster.fenced"
	ClusterLoss     ID = "cluster.loss"
	ClusterStandby  ID = "cluster.not_standby"
	ClusterLeads    ID = "cluster.leads"
	ClusterUnsynced ID = "cluster.unsynced"

	ClusterKernelAway ID = "cluster.kernel_away"
	ClusterUnanswered ID = "cluster.unanswered"
	ClusterNotAsked   ID = "cluster.not_asked"
	ClusterNotQueued  ID = "cluster.not_queued"
	ClusterDropped    ID = "cluster.dropped"

	// Jobs.
	JobNotFound   ID = "job.not_found"
	JobTooMany    ID = "job.too_many"
	JobTimeout    ID = "job.timeout"
	JobNoProcess  ID = "job.no_process"
	JobLongResult ID = "job.result_too_long"

	// Replay and undo.
	ReplayBeyond   ID = "replay.beyond_head"
	UndoImpossible ID = "undo.impossible"
	UndoNothing    ID = "undo.nothing"
	UndoOvertaken  ID = "undo.overtaken"
	UndoAlready    ID = "undo.already"

	// Steps of agents.
	StepsNotFound  ID = "steps.not_found"
	StepsMissing   ID = "steps.missing"
	StepsConflict  ID = "steps.conflict"
	StepsNotKept   ID = "steps.not_kept"
	StepsOtherPlan ID = "steps.other_plan"

	// Resources.
	ResourceNotFound  ID = "resource.not_found"
	ResourceQuota     ID = "resource.quota_exceeded"
	ResourceExhausted ID = "resource.exhausted"
	ResourceNotHeld   ID = "resource.not_held"

	// Deltas.

	// Secrets.
	CryptoNoKey    ID = "crypto.no_key"
	CryptoNoSealer ID = "crypto.no_sealing_key"
	CryptoNotReady ID = "crypto.not_ready"
	CryptoBadValue ID = "crypto.bad_value"
	CryptoCannot   ID = "crypto.cannot_seal"
	CryptoOtherKey ID = "crypto.other_key"
	CryptoBroken   ID = "crypto.broken"

	// References and blobs.
	BlobNotFound  ID = "blob.not_found"
	BlobForbidden ID = "blob.forbidden"
	BlobInvalid   ID = "blob.invalid"
	BlobChanging  ID = "blob.changing"
	BlobNoRoom    ID = "blob.no_room"
	BlobTooLarge  ID = "blob.too_large"

	// Names, and the files below root.
	NameNotFound   ID = "name.not_found"
	NameInvalid    ID = "name.invalid"
	FileNotFound   ID = "file.not_found"
	FileForbidden  ID = "file.forbidden"
	FileNotRegular ID = "file.not_regular"
	FileNotLocal   ID = "file.not_local"
	FileTooLarge   ID = "file.too_large"

	// Fetching and networks.
	HTTPForbidden        ID = "http.forbidden"
	HTTPAddress          ID = "http.forbidden_address"
	HTTPInvalid          ID = "http.invalid"
	HTTPUpstream         ID = "http.upstream_failed"
	HTTPTimeout          ID = "http.timeout"
	HTTPTooLarge         ID = "http.too_large"
	NetForbidden         ID = "net.forbidden"
	NetNotTLS            ID = "net.not_tls"
	NetUnreachable       ID = "net.unreachable"
	NetTimeout           ID = "net.timeout"
	NetInvalid           ID = "net.invalid"
	UpstreamForbidden    ID = "upstream.forbidden"
	UpstreamFailed       ID = "upstream.failed"
	UpstreamNoCredential ID = "upstream.no_credential"
	UpstreamLogin        ID = "upstream.login"
	UpstreamToken        ID = "upstream.token_refused"

	// Tools and ingests.
	ToolManifest    ID = "tool.manifest_not_json"
	ToolInvalid     ID = "tool.invalid"
	ToolNotCallable ID = "tool.not_callable"
	ToolBadManifest ID = "tool.bad_manifest"
	ToolNoPrograms  ID = "tool.no_programs"
	ToolBadModule   ID = "tool.bad_module"
	ToolCannotStart ID = "tool.cannot_start"
	ToolFailed      ID = "tool.failed"
	ToolBadOutput   ID = "tool.bad_output"
	ToolLimit       ID = "tool.limit"
	ToolTimeout     ID = "tool.timeout"
	IngestInvalid   ID = "ingest.invalid"
	IngestNotText   ID = "ingest.not_text"
	IngestIntegrity ID = "ingest.integrity"
	IngestSignature ID = "ingest.bad_signature"
	IngestUnproven  ID = "ingest.unproven"
	IngestNoWeb     ID = "ingest.no_web"
	IngestNoRoom    ID = "ingest.no_room"
)

package fault

// entries is the one list of ids (PROTOCOL 3).
var entries = map[ID]Entry{
	// The wire: frames and envelopes.
	WireInvalidJSON:    {Kind: InvalidJSON, Meaning: "The line is not one strict JSON object.", Fix: "Send one JSON object a line: UTF-8, no duplicate names, at most 64 levels deep."},
	WireSchema:         {Kind: SchemaViolation, Meaning: "The envelope does not fit the schema.", Fix: "Send kind, type, data and metadata as the message names them."},
	WireTooLong:        {Kind: LineTooLong, Meaning: "The line is longer than the socket's limit.", Fix: "Put large members into a blob and send a reference, or raise limits.line_bytes."},
	WireUnknownSyscall: {Kind: UnknownSyscall, Meaning: "No syscall has this name.", Fix: "Syscall.List names what there is."},
	WireInvalidInput:   {Kind: InvalidInput, Meaning: "The data does not fit the syscall's schema.", Fix: "Syscall.Describe shows the schema."},
	WireAnswerTooLong:  {Kind: InvalidInput, Meaning: "The answer does not fit a line, and has no member to move to a blob.", Fix: "Ask for less."},
	WireUnexpected:     {Kind: SchemaViolation, Meaning: "A reply or an error came from a client.", Fix: "Send commands, queries and events."},

	// The syscall table.
	SyscallNotFound: {Kind: NotFound, Meaning: "No syscall has this name.", Fix: "Syscall.List names what there is."},

	// Authentication.
	AuthRequired:  {Kind: Unauthenticated, Meaning: "The connection has not answered the prologue.", Fix: "Answer Syscall.Authenticate first."},
	AuthSignature: {Kind: Unauthenticated, Meaning: "The signature is wrong, or its key is not authorized.", Fix: "Sign with a key of authorized_keys."},
	AuthAgain:     {Kind: Conflict, Meaning: "The connection is authenticated already.", Fix: "Open another connection."},
	AuthBusy:      {Kind: Unavailable, Meaning: "Too many connections have not answered the prologue.", Fix: "Connect again and answer at once."},
	AuthMalformed: {Kind: Unauthenticated, Meaning: "The offer, the answer, the key or the signature is not well formed.", Fix: "The message says what to send."},
	AuthNamespace: {Kind: Unauthenticated, Meaning: "The signature was made for something else.", Fix: "Sign in the namespace that the message names."},
	AuthHash:      {Kind: Unauthenticated, Meaning: "The signature's hash or algorithm is not accepted.", Fix: "Sign with sha256 or sha512, and RSA with rsa-sha2."},
	AuthKeyType:   {Kind: Unauthenticated, Meaning: "The key is not accepted: its type, its size, or its line in authorized_keys.", Fix: "Use another key, or mend the line; \"pwos auth keys\" checks it."},
	AuthNoSuchKey: {Kind: Unauthenticated, Meaning: "The key is not in authorized_keys.", Fix: "Add it there, or use one that is."},
	AuthExpired:   {Kind: Unauthenticated, Meaning: "The key's expiry-time has passed.", Fix: "Give it a later one in authorized_keys, or use another key."},
	AuthWrongKey:  {Kind: Unauthenticated, Meaning: "The signature is by another key than the one that was named.", Fix: "Name the key that signs."},
	AuthNoTouch:   {Kind: Unauthenticated, Meaning: "The security key signed without being touched.", Fix: "Touch it, or set no-touch-required for it."},
	AuthSpent:     {Kind: Unauthenticated, Meaning: "The challenge was answered already.", Fix: "Connect again."},
	AuthLate:      {Kind: Unauthenticated, Meaning: "The prologue is from another time.", Fix: "Connect again; look at the clock."},
	AuthNoKeys:    {Kind: Unauthenticated, Meaning: "The kernel cannot read its authorized_keys.", Fix: "See its log, and mend the file."},
	AuthGrant:     {Kind: Unauthenticated, Meaning: "The key's line in authorized_keys grants something that cannot be granted.", Fix: "Mend the line; \"pwos auth keys\" checks it."},
	AuthPeer:      {Kind: Unauthenticated, Meaning: "The other end of the connection is another user's process.", Fix: "Run both as one user."},

	// What a client says of a login.
	AuthLogin:       {Kind: Unauthenticated, Meaning: "The kernel refused the login, or the client does not trust the kernel.", Fix: "pwos auth status shows the keys and the kernel."},
	AuthHost:        {Kind: Unauthenticated, Meaning: "The kernel did not prove that it holds its host key.", Fix: "See that client and kernel name the same socket."},
	AuthHostChanged: {Kind: Unauthenticated, Meaning: "The kernel has another host key than before.", Fix: "If you know why: pwos auth trust."},
	AuthDowngraded:  {Kind: Unauthenticated, Meaning: "The kernel asks for no key, though it did before.", Fix: "If you know why: pwos auth trust --forget."},
	AuthNoIdentity:  {Kind: InvalidInput, Meaning: "There is no key to sign with.", Fix: "Make one with ssh-keygen, add it with ssh-add, or name it with --identity."},
	AuthKeyFile:     {Kind: InvalidInput, Meaning: "The key file cannot be used.", Fix: "Name another with --identity, or add it to the ssh-agent."},
	AuthAgentSilent: {Kind: Timeout, Meaning: "The ssh-agent did not answer.", Fix: "Touch the key or confirm when asked, or name a key file."},
	AuthAgentNo:     {Kind: Upstream, Meaning: "The ssh-agent does not list its keys, or does not sign.", Fix: "Unlock it with \"ssh-add -X\", or name a key file."},
	AuthAgentLied:   {Kind: Upstream, Meaning: "What the ssh-agent returned is no signature by the key.", Fix: "Name another key."},

	// What a client says of sealing and of exports.
	SealNoKey:         {Kind: Forbidden, Meaning: "There is no key to seal or open with, or its holder refuses.", Fix: "Add it to the ssh-agent, or name it with --identity."},
	SealBroken:        {Kind: Conflict, Meaning: "The value is not what was sealed, or was sealed for something else.", Fix: "Take it from where it came from."},
	SealSilent:        {Kind: Timeout, Meaning: "The ssh-agent did not answer.", Fix: "Touch the key or confirm when asked."},
	ExportBusy:        {Kind: Conflict, Meaning: "Another export uses the cursor or the file.", Fix: "End it, or name another file."},
	ExportOtherRecord: {Kind: Conflict, Meaning: "The export has come to an entry that this kernel's record does not have.", Fix: "Name another cursor or file for this kernel, or restore the record."},
	ExportUnreadable:  {Kind: Conflict, Meaning: "A cursor, a file or an entry has another form than an export knows.", Fix: "Name another file; nothing was changed."},
	ExportRefused:     {Kind: Upstream, Meaning: "The receiver of an export refused a record.", Fix: "The message has its answer; the export goes on with that record once the receiver takes it."},
	ExportUndelivered: {Kind: Timeout, Meaning: "The receiver of an export cannot be reached.", Fix: "Start it, or correct the address; the export goes on where it stopped."},

	// The places of a kernel, its state and its start.
	PlaceUnsafe:       {Kind: Conflict, Meaning: "A file or a directory of the kernel's could be changed by others, or is not what it should be.", Fix: "The message says what to do; nothing is repaired."},
	PlaceOccupied:     {Kind: Conflict, Meaning: "Something else exists or listens at the socket's path.", Fix: "Move it out of the way, or set PWOS_RUNTIME_DIR."},
	PlaceServed:       {Kind: Conflict, Meaning: "Another kernel serves the socket.", Fix: "End it with \"pwos shutdown\", or set PWOS_RUNTIME_DIR."},
	PlaceLocked:       {Kind: Conflict, Meaning: "Another kernel holds the runtime directory.", Fix: "End it with \"pwos shutdown\", or set PWOS_RUNTIME_DIR."},
	PlacePathTooLong:  {Kind: InvalidInput, Meaning: "The socket's path is longer than the system allows.", Fix: "Set PWOS_RUNTIME_DIR to a shorter directory."},
	PlaceInside:       {Kind: InvalidInput, Meaning: "The agent's working directory contains the kernel's own files.", Fix: "Name another with --dir, or use --own-dir."},
	PlaceNotThere:     {Kind: NotFound, Meaning: "The file or directory is not there.", Fix: "The message says where it was looked for."},
	ConfigInvalid:     {Kind: InvalidInput, Meaning: "The configuration is invalid.", Fix: "Mend the setting at the line that the message names."},
	StateDamaged:      {Kind: Internal, Meaning: "The journal is not what was written to it.", Fix: "pwos audit verify shows the extent; restore it from a copy."},
	StateForm:         {Kind: Conflict, Meaning: "The archive's anchor has a state of another form than this version reads.", Fix: "Start the version that wrote it, or bring the archived segments back."},
	StateCopied:       {Kind: Conflict, Meaning: "The state directory is a copy of another kernel's.", Fix: "pwos restore --here makes it a kernel of its own."},
	DaemonNotRunning:  {Kind: Unavailable, Meaning: "No kernel is running.", Fix: "Start it with pwosd, or let a call start it."},
	DaemonNoAnswer:    {Kind: Unavailable, Meaning: "The kernel did not answer in time.", Fix: "Allow more time with --timeout."},
	DaemonUnreachable: {Kind: Unavailable, Meaning: "There is no connection to the kernel.", Fix: "pwosd shows the kernel's start in the foreground."},
	DaemonLaunch:      {Kind: Unavailable, Meaning: "The kernel could not be started.", Fix: "pwosd shows the kernel's start in the foreground."},
	DaemonHungUp:      {Kind: Unavailable, Meaning: "The kernel closed the connection before it had answered.", Fix: "See kernel.log in the runtime directory."},
	CallTimeout:       {Kind: Timeout, Meaning: "The command's own time limit has passed.", Fix: "Allow more with --timeout."},
	UsageInvalid:      {Kind: InvalidInput, Meaning: "The command line is wrong.", Fix: "The verb's --help shows how it is used."},

	// What a caller may do.
	CapabilityDenied:       {Kind: Forbidden, Meaning: "No token of the caller allows the call.", Fix: "Grant it: pwos cap grant PID --add SYSCALL."},
	CapabilityExpired:      {Kind: Forbidden, Meaning: "The caller's token, or its granter's, has expired.", Fix: "Grant it again."},
	CapabilityOperatorOnly: {Kind: Forbidden, Meaning: "Only the operator may do this.", Fix: "Ask the operator."},
	CapabilityNotYours:     {Kind: Forbidden, Meaning: "The call is about a process that the caller has no authority over.", Fix: "Name yourself or a descendant."},
	CapabilityTooMuch:      {Kind: Forbidden, Meaning: "More would be given than the giver holds itself.", Fix: "Give less, or have the granter's token extended."},
	CapabilityOtherGranter: {Kind: Conflict, Meaning: "Another agent has granted the process its token.", Fix: "Have that agent or the operator add to it, or replace it."},
	CapabilityNotFound:     {Kind: NotFound, Meaning: "The process has no token.", Fix: "Grant it one: pwos cap grant PID --add SYSCALL."},

	// Idempotency keys.
	IdempotencyOtherBody: {Kind: Conflict, Meaning: "The idempotency key was used for another message.", Fix: "Take a new key."},
	IdempotencyUnderWay:  {Kind: Conflict, Meaning: "The first message with this idempotency key is still being carried out.", Fix: "Wait for its answer."},
	IdempotencyTooLong:   {Kind: InvalidInput, Meaning: "The idempotency key is too long.", Fix: "Take a shorter one."},
	IdempotencyTooMany:   {Kind: QuotaExceeded, Meaning: "The caller has too many idempotency keys of the last 24 hours.", Fix: "Leave keys out, or use shorter ones."},

	// The kernel itself.
	KernelInternal:     {Kind: Internal, Meaning: "The kernel failed at the call.", Fix: "The kernel's log says why."},
	KernelInterrupted:  {Kind: Internal, Meaning: "The kernel failed, or stopped, while the call was in flight: it may or may not have happened.", Fix: "Look whether it happened before you repeat it."},
	KernelStopping:     {Kind: Unavailable, Meaning: "The kernel is shutting down.", Fix: "Connect again once it is back."},
	KernelUnsupported:  {Kind: Internal, Meaning: "This kernel is not configured to do it.", Fix: "See the configuration."},
	KernelMismatch:     {Kind: Conflict, Meaning: "The running kernel has other settings than the command line asks for.", Fix: "Leave out the option, or shut the kernel down first."},
	AuditNotFound:      {Kind: NotFound, Meaning: "The record has no such entry, or none about the key.", Fix: "Audit.Log shows the entries that there are."},
	JournalUnavailable: {Kind: Unavailable, Meaning: "The journal cannot be written or read now: nothing was done.", Fix: "Try again once its disk has room."},
	JournalArchived:    {Kind: NotFound, Meaning: "The entry was moved out of the journal, into an archive.", Fix: "pwos audit verify DIR checks the archive; its files are lines of JSON."},
	BackupBroken:       {Kind: Internal, Meaning: "The file is no backup, or not a whole one, or was altered: nothing was restored.", Fix: "Take another backup."},
	FileExists:         {Kind: Conflict, Meaning: "The file or directory is there already, and is left as it is.", Fix: "Give another name, or --force where the verb has it."},
	JournalForeign:     {Kind: Conflict, Meaning: "The directory has files of another journal, or none that an archive could go on from.", Fix: "Give a new directory."},
	JournalPlace:       {Kind: Conflict, Meaning: "The directory cannot be the archive: it is the kernel's own, cannot be made or written, or its disk is full. Nothing was moved.", Fix: "Give another directory, or make room."},
	JournalLost:        {Kind: Unavailable, Meaning: "The entry was lost with a failed write: nothing was done, or it shows at the next start.", Fix: "Try again; look first where the message says so."},
	ClockAhead:         {Kind: InvalidInput, Meaning: "The tick of the call is later than the kernel's.", Fix: "Leave the tick out."},
	CallCancelled:      {Kind: Unavailable, Meaning: "The call was given up: its connection closed, or the kernel is shutting down.", Fix: "Call again."},
	CallTooMany:        {Kind: QuotaExceeded, Meaning: "The agent has too many calls or bytes in flight, or writes the journal too fast.", Fix: "Wait for answers before you send more."},

	// Connections and subscriptions.
	ConnectionTooMany:   {Kind: QuotaExceeded, Meaning: "The agent, or all agents together, have as many connections as they may.", Fix: "Close one, or use one that is open."},
	SyscallTaken:        {Kind: Conflict, Meaning: "The name is registered already, as something else.", Fix: "Take another name, or unregister that one first: Syscall.Unregister."},
	SyscallTooMany:      {Kind: QuotaExceeded, Meaning: "As many syscalls are registered in the origin as there may be.", Fix: "Unregister some: Syscall.Unregister."},
	SyscallTooOften:     {Kind: QuotaExceeded, Meaning: "The agent has registered as often in the last minute as it may.", Fix: "Wait a minute."},
	SyscallBadCode:      {Kind: InvalidInput, Meaning: "The code of the syscall cannot be registered: it is no TypeScript, imports something, exports no handler, or fails when it is loaded.", Fix: "The message says what is wrong, with line and column if they are known."},
	ProviderAway:        {Kind: Unavailable, Meaning: "The connection that provides the registered syscall is not there, or reads nothing; or the process that runs its code cannot be started; or the provider says that what it needs is away. Nothing was done.", Fix: "Have its provider connect, and register it again."},
	ProviderDied:        {Kind: Upstream, Meaning: "The connection that provides the registered syscall ended before it answered, or the process that ran its code. The call may have had effects, which code has none of.", Fix: "Look, then call again once the provider is back."},
	ProviderTimeout:     {Kind: Timeout, Meaning: "The provider of the registered syscall did not answer in time. The call may have had effects.", Fix: "Look, then call again."},
	ProviderFailed:      {Kind: Upstream, Meaning: "The provider of the registered syscall says that the call failed, or its code threw.", Fix: "The message says why."},
	ProviderBadAnswer:   {Kind: Upstream, Meaning: "The provider of the registered syscall answered what the output schema that it registered does not allow, or its code what is no JSON value. The call may have had effects.", Fix: "Mend the provider, or register it with another output schema."},
	ProviderLimit:       {Kind: Upstream, Meaning: "The code of the registered syscall needs more memory, a deeper call stack, or a longer answer than it may.", Fix: "Ask for less, or raise the limits of [code] in the configuration."},
	ProviderItself:      {Kind: Conflict, Meaning: "The provider of the syscall waits for this call itself: for the call, or for one that the call is made for.", Fix: "Do it directly. A provider whose call does not serve a request that it carries out must say so by another id in metadata.causation."},
	ProviderNoCall:      {Kind: NotFound, Meaning: "No call with this call_id waits for this connection: it was answered, has ended, or is another's.", Fix: "Answer each Syscall.Requested once, in time, on the connection that got it."},
	ConnectionFollows:   {Kind: Conflict, Meaning: "The connection has subscriptions or unacknowledged mail, and cannot become another process.", Fix: "Attach on a connection of its own, before anything else."},
	SubscriptionTooMany: {Kind: QuotaExceeded, Meaning: "The connection has as many subscriptions as it may.", Fix: "Open another connection."},

	// Policy and approvals.
	ProcessPaused:   {Kind: Unavailable, Meaning: "The process was paused, and its connection or the kernel ended before it went on. Nothing was done.", Fix: "Make the call again after the operator has resumed it (pwos resume)."},
	RoleDenied:      {Kind: Forbidden, Meaning: "The key that the connection has shown is limited to a role, which does not include the call.", Fix: "Show another key, or have the operator take the role out of its line of authorized_keys."},
	BudgetExhausted: {Kind: QuotaExceeded, Meaning: "What the agent, or an ancestor that it draws on, was given to use up is used up. Nothing was done.", Fix: "See what is left with pwos budget, and start the agent again with more."},
	PolicyDenied:    {Kind: Forbidden, Meaning: "A rule of the policy forbids the call.", Fix: "Do as the rule's advice says, or have the operator change it: pwos policy show."},
	PolicyFailed:    {Kind: Forbidden, Meaning: "A rule of the policy cannot be evaluated for the call, which is therefore refused.", Fix: "Send what the rule looks at in a form that it can compare, or have the operator change the rule."},
	PolicyAsks:      {Kind: Forbidden, Meaning: "A rule requires an approval where the kernel cannot ask for one, for example for a redirect.", Fix: "Have the operator make the call, or change the rule."},
	PolicyInvalid:   {Kind: Forbidden, Meaning: "The files of the policy are not valid, so that no agent is served.", Fix: "Mend them and load them: pwos policy check, pwos policy reload."},
	ApprovalPending: {Kind: Pending, Meaning: "The call waits for an approval.", Fix: "Make the same call again once it is approved: pwos approvals."},
	ApprovalRefused: {Kind: Forbidden, Meaning: "The operator refused the call. The same call is refused until the question expires.", Fix: "Do without the call; the message says why, where a reason was given."},
	ApprovalTooMany: {Kind: QuotaExceeded, Meaning: "The agent, or all agents together, have too many open questions, or the call has too much data to ask about.", Fix: "Wait until some are answered or expire: pwos approvals."},
	ApprovalUnknown: {Kind: NotFound, Meaning: "There is no such question, or it was over so long ago that it is forgotten.", Fix: "Approval.List names those that there are."},
	ApprovalOver:    {Kind: Conflict, Meaning: "The question cannot be answered any more: it was answered already, or has expired.", Fix: "If the call is still wanted, the agent makes it again, which raises a new question."},

	// Memory.
	MemoryNotFound: {Kind: NotFound, Meaning: "The key is not there.", Fix: "Memory.List shows the keys."},
	MemoryBadKey:   {Kind: InvalidInput, Meaning: "The key is not well formed.", Fix: "Use segments separated by slashes, at most 1024 bytes."},
	MemoryReadOnly: {Kind: Forbidden, Meaning: "proc/ is made by the kernel and read-only.", Fix: "Write to another key."},
	MemoryUnsealed: {Kind: InvalidInput, Meaning: "vault/ takes sealed values only.", Fix: "Seal the value first: pwos seal."},
	MemoryChanged:  {Kind: Conflict, Meaning: "The value is not the expected one.", Fix: "Get the key and decide again."},

	// Looking back, and undoing.
	ReplayBeyond:   {Kind: NotFound, Meaning: "The journal has no such entry yet.", Fix: "Name an entry up to its head, which the message names: pwos audit log."},
	UndoImpossible: {Kind: InvalidInput, Meaning: "What the entry did cannot be undone by the kernel.", Fix: "Undo it by hand; the message says why."},
	UndoNothing:    {Kind: Conflict, Meaning: "The entry changed nothing, so there is nothing to undo.", Fix: "Name the entry of a change: pwos audit log."},
	UndoOvertaken:  {Kind: Conflict, Meaning: "What the entry did does not stand any more: others have changed it since.", Fix: "Undo the later changes first, latest first: the message lists them."},
	UndoAlready:    {Kind: Conflict, Meaning: "The entry is undone already.", Fix: "To do it again, undo the entry that the message names."},

	// Processes and programs.
	ProcessNotFound:   {Kind: NotFound, Meaning: "There is no such process.", Fix: "pwos ps shows the processes."},
	ProcessNeverWas:   {Kind: Conflict, Meaning: "The call is made as a process that never was.", Fix: "pwos ps shows the processes."},
	ProcessEnded:      {Kind: Ended, Meaning: "The calling process has ended.", Fix: "pwos ps shows the processes."},
	ProcessIsEnded:    {Kind: Conflict, Meaning: "The process that the call is about has ended.", Fix: "pwos ps shows the processes."},
	ProcessAlive:      {Kind: Conflict, Meaning: "The process, or another one in the same directory, is running.", Fix: "End it first: pwos kill PID."},
	ProcessNameTaken:  {Kind: Conflict, Meaning: "A living sibling has the name.", Fix: "Choose another child_agent_id."},
	ProcessNotStarted: {Kind: InvalidInput, Meaning: "The agent's program could not be started.", Fix: "The message says why."},
	ProcessTaken:      {Kind: Conflict, Meaning: "A connection cannot attach to the process: it belongs to a program or to a key.", Fix: "Attach under another name."},
	ProcessOtherGrant: {Kind: Conflict, Meaning: "The process that has the name was granted something else than Process.Attach asks for.", Fix: "Leave capabilities out, or grant the difference: pwos cap grant PID --add SYSCALL."},
	SandboxTooWide:    {Kind: Forbidden, Meaning: "The sandbox asked for is wider than the spawning process's own.", Fix: "Ask for no more than your own sandbox allows."},

	// Messages between processes.
	IpcMailboxFull: {Kind: QuotaExceeded, Meaning: "The receiver's mailbox is full.", Fix: "Try again once it has received."},
	IpcNoMailbox:   {Kind: NotFound, Meaning: "The process has no mailbox.", Fix: "Spawn it first."},
	IpcBlocked:     {Kind: Forbidden, Meaning: "Governance blocks the message.", Fix: "Do not send its like."},
	IpcFollowed:    {Kind: Conflict, Meaning: "Another connection follows the mailbox.", Fix: "End that one, or take messages with Ipc.Receive."},

	// Other kernels.
	ClusterOff:      {Kind: Unavailable, Meaning: "The kernel is in no cluster.", Fix: "Set cluster.name and cluster.bus in its configuration: docs/cluster.md."},
	ClusterBus:      {Kind: Unavailable, Meaning: "The bus cannot be reached, or does not do what it is asked.", Fix: "Start pwos-bus; pwos cluster status shows what is wrong."},
	ClusterNoStream: {Kind: NotFound, Meaning: "The bus has no journal of this kernel.", Fix: "pwos cluster status names the members."},
	ClusterNoKernel: {Kind: NotFound, Meaning: "No member of the cluster has this name.", Fix: "pwos cluster status names the members."},
	ClusterMembers:  {Kind: Unavailable, Meaning: "The file of the members cannot be read.", Fix: "The message says why."},
	ClusterSelf:     {Kind: InvalidInput, Meaning: "The kernel that is named is this one.", Fix: "Leave the name of the kernel out."},
	ClusterTooLarge: {Kind: LineTooLong, Meaning: "The message is longer than the bus carries.", Fix: "Send less at a time."},
	ClusterFull:     {Kind: QuotaExceeded, Meaning: "As many messages of this process wait for other kernels as may.", Fix: "Send again once some are delivered."},
	ClusterRequest:  {Kind: InvalidInput, Meaning: "A request between kernels does not have its form.", Fix: "Run the same version of pwosd on both sides."},
	ClusterReplayed: {Kind: Conflict, Meaning: "A request between kernels was made before, or belongs to an earlier session.", Fix: "A kernel makes it again by itself; many of these mean that somebody repeats what was sent on the bus."},
	ClusterSigned:   {Kind: Unauthenticated, Meaning: "A request between kernels is not signed by the host key of the kernel that it names.", Fix: "Compare pwos cluster key there with the line of the members file here."},
	ClusterAway:     {Kind: Unavailable, Meaning: "Nothing was done: no majority of the bus acknowledges entries of the journal.", Fix: "Try again once the bus is back; pwos cluster status shows what is wrong."},
	ClusterUnknown:  {Kind: Unavailable, Meaning: "No majority of the bus has acknowledged the call in time: it is not known whether it lasts.", Fix: "Send it again with the same idempotency key once the bus is back, or look whether it took effect."},
	ClusterFenced:   {Kind: Unavailable, Meaning: "The stream of this kernel has entries of another one, so this one has stopped.", Fix: "Ask the kernel that wrote them; this one sets its own entries aside at its next start."},

	// Jobs.
	JobNotFound:   {Kind: NotFound, Meaning: "There is no such job, or it is forgotten.", Fix: "Job.List names those that there are."},
	JobTooMany:    {Kind: QuotaExceeded, Meaning: "The process has too many pending jobs.", Fix: "Wait for some to end, or cancel them."},
	JobTimeout:    {Kind: Timeout, Meaning: "The job's call took longer than its timeout.", Fix: "Start it with a longer timeout."},
	JobNoProcess:  {Kind: Ended, Meaning: "The process that started the job has ended.", Fix: "Start it from another process."},
	JobLongResult: {Kind: InvalidInput, Meaning: "The job's call was answered more than a job keeps.", Fix: "Have the call ask for less, or store what it finds."},

	// Copies of working directories.
	SnapshotNone:    {Kind: NotFound, Meaning: "There is no such copy of a working directory.", Fix: "pwos snapshots lists them; pwos run --snapshot makes one."},
	SnapshotTooBig:  {Kind: Insufficient, Meaning: "The working directory is larger than a copy may be. Nothing was started or changed.", Fix: "Raise --snapshot-limit, leave parts out with --snapshot-skip, or use a file system with reflinks."},
	SnapshotFailed:  {Kind: Conflict, Meaning: "An entry of the working directory cannot be copied, compared or restored.", Fix: "The message names it and says why."},
	SnapshotBusy:    {Kind: Conflict, Meaning: "Another command is using the copy.", Fix: "Wait until it has ended."},
	SnapshotChanged: {Kind: Conflict, Meaning: "Files have changed since the agent ended. Nothing was restored.", Fix: "Save what you need of them; --force restores anyway, and keeps a copy of what it replaces."},

	// Resources.
	ResourceNotFound:  {Kind: NotFound, Meaning: "No pool has this name.", Fix: "The message names the pools."},
	ResourceQuota:     {Kind: QuotaExceeded, Meaning: "The caller, or a granter of it, would hold more than its quota.", Fix: "Release some, or have the quota raised."},
	ResourceExhausted: {Kind: Insufficient, Meaning: "The pool has not enough left.", Fix: "Ask for less, or again once others have released."},
	ResourceNotHeld:   {Kind: Conflict, Meaning: "The caller would release more than it holds.", Fix: "Release at most what you hold."},

	// Deltas.

	// Secrets.
	CryptoNoKey:    {Kind: NotFound, Meaning: "The kernel does not seal with that key, or has none.", Fix: "pwos status shows the sealing key."},
	CryptoNoSealer: {Kind: InvalidInput, Meaning: "The kernel has no key to seal with.", Fix: "Set crypto.identity to an ed25519 or rsa key, and restart it."},
	CryptoNotReady: {Kind: Timeout, Meaning: "The sealing key's agent has not answered yet.", Fix: "Confirm there, and try again."},
	CryptoBadValue: {Kind: InvalidInput, Meaning: "The sealed value cannot be opened: it is damaged, or sealed for another origin or other aad.", Fix: "Seal it again."},
	CryptoCannot:   {Kind: InvalidInput, Meaning: "The key cannot seal, or the text is too long to be sealed.", Fix: "Use an ed25519 or rsa key; seal a key for what is longer."},
	CryptoOtherKey: {Kind: InvalidInput, Meaning: "Another key has sealed the value.", Fix: "Open it with that key."},
	CryptoBroken:   {Kind: InvalidInput, Meaning: "The sealed value was changed after it was sealed.", Fix: "Take it from where it came from."},

	// References and blobs.
	BlobNotFound:  {Kind: NotFound, Meaning: "The blob is not there: it was removed, or never was.", Fix: "Make it again."},
	BlobForbidden: {Kind: Forbidden, Meaning: "The reference leads to no regular file of the kernel's user inside the directory of blobs.", Fix: "Copy the file into that directory."},
	BlobInvalid:   {Kind: InvalidInput, Meaning: "The reference is not well formed.", Fix: "Send scheme and path as the kernel wrote them."},
	BlobChanging:  {Kind: Conflict, Meaning: "The file is being changed.", Fix: "Wait until it is whole, then try again."},
	BlobNoRoom:    {Kind: Insufficient, Meaning: "The blob does not fit.", Fix: "Ask for less, or raise the limit."},
	BlobTooLarge:  {Kind: InvalidInput, Meaning: "What the reference names is larger than it may be here.", Fix: "Send less, or raise the limit."},

	// Names, and the files below root.
	NameNotFound:   {Kind: NotFound, Meaning: "Nothing holds the name.", Fix: "Start the kernel with --root, or mount what holds it."},
	NameInvalid:    {Kind: InvalidInput, Meaning: "The name means nothing, or leads above root.", Fix: "Write os:///p/q, p/q or ./p."},
	FileNotFound:   {Kind: NotFound, Meaning: "There is no such file, below root or on the server.", Fix: "Check the name."},
	FileForbidden:  {Kind: Forbidden, Meaning: "The file leads out of root, or the kernel may not read it.", Fix: "Put the file itself below root, readable by the kernel's user."},
	FileNotRegular: {Kind: InvalidInput, Meaning: "The name is that of a directory, a pipe or a device.", Fix: "Name a regular file."},
	FileNotLocal:   {Kind: InvalidInput, Meaning: "The file is not below root.", Fix: "Name a file below root."},
	FileTooLarge:   {Kind: Insufficient, Meaning: "The file is larger than may be read.", Fix: "Name a smaller file."},

	// Fetching and networks.
	HTTPForbidden:        {Kind: Forbidden, Meaning: "The caller may not fetch from there.", Fix: "Allow it: pwos cap grant PID --add Http.Fetch --host HOST."},
	HTTPAddress:          {Kind: Forbidden, Meaning: "The address is closed to agents.", Fix: "Name a public address, or open this one in the configuration."},
	HTTPInvalid:          {Kind: InvalidInput, Meaning: "The request cannot be made.", Fix: "The message names the member."},
	HTTPUpstream:         {Kind: Upstream, Meaning: "The server failed, or its answer cannot be read.", Fix: "Try again later."},
	HTTPTimeout:          {Kind: Timeout, Meaning: "The server did not answer in time.", Fix: "Ask for less, or allow more time."},
	HTTPTooLarge:         {Kind: Upstream, Meaning: "The answer is larger than it may be.", Fix: "Ask for less."},
	NetForbidden:         {Kind: Forbidden, Meaning: "The agent may not connect there.", Fix: "Allow it: pwos cap grant PID --add Http.Fetch --host HOST."},
	NetNotTLS:            {Kind: Forbidden, Meaning: "What the agent sent is not TLS with the allowed name.", Fix: "Use https, to the host that was allowed."},
	NetUnreachable:       {Kind: Upstream, Meaning: "The host did not accept the connection.", Fix: "Try again later."},
	NetTimeout:           {Kind: Timeout, Meaning: "The connection was not made in time.", Fix: "Try again later."},
	NetInvalid:           {Kind: InvalidInput, Meaning: "The connection asked for has no usable host or port.", Fix: "Name a host and a port from 1 to 65535."},
	UpstreamForbidden:    {Kind: Forbidden, Meaning: "The agent may not use the upstream, or not in this way.", Fix: "Allow it: pwos cap grant PID --add Upstream:NAME."},
	UpstreamFailed:       {Kind: Upstream, Meaning: "The upstream did not answer.", Fix: "Try again later."},
	UpstreamNoCredential: {Kind: Unavailable, Meaning: "The upstream's credential cannot be opened.", Fix: "Seal it, and store it under the key that the configuration names."},
	UpstreamLogin:        {Kind: Unavailable, Meaning: "The server requires a login: there is none, it has expired, or it has too narrow a scope.", Fix: "Log in: pwos mcp login NAME."},
	UpstreamToken:        {Kind: Unavailable, Meaning: "The server does not take the access token any more. The next request renews it.", Fix: "Send the request again."},

	// Tools and ingests.
	ToolManifest:    {Kind: InvalidJSON, Meaning: "The tool's manifest is not strict JSON.", Fix: "Mend the manifest."},
	ToolInvalid:     {Kind: InvalidInput, Meaning: "The input is not one JSON value.", Fix: "Send strict JSON."},
	ToolNotCallable: {Kind: InvalidInput, Meaning: "The file is neither a WebAssembly module nor executable.", Fix: "Name a tool."},
	ToolBadManifest: {Kind: InvalidInput, Meaning: "The tool's manifest cannot be read.", Fix: "Fix the file next to the tool, or what the tool writes when called with --describe."},
	ToolNoPrograms:  {Kind: Forbidden, Meaning: "The kernel runs no programs as tools.", Fix: "Set tools.programs = true in the configuration."},
	ToolBadModule:   {Kind: Upstream, Meaning: "The module is not valid, or needs what the kernel does not offer.", Fix: "Build it for WASI preview 1."},
	ToolCannotStart: {Kind: Upstream, Meaning: "The program cannot be started.", Fix: "The message says why."},
	ToolFailed:      {Kind: Upstream, Meaning: "The tool failed.", Fix: "The message says how it ended."},
	ToolBadOutput:   {Kind: Upstream, Meaning: "The tool's output is not one JSON value.", Fix: "Mend the tool."},
	ToolLimit:       {Kind: Upstream, Meaning: "The tool wrote more than it may.", Fix: "Ask for less, or raise its limits."},
	ToolTimeout:     {Kind: Timeout, Meaning: "The tool did not end in time.", Fix: "Ask for less, or raise its limits."},
	IngestInvalid:   {Kind: InvalidInput, Meaning: "The front matter cannot be read, or a member has the wrong type.", Fix: "The message says which."},
	IngestNotText:   {Kind: InvalidInput, Meaning: "The resource is not text in UTF-8.", Fix: "Name a text."},
	IngestIntegrity: {Kind: InvalidInput, Meaning: "The resource has another digest than the integrity names, or that names none.", Fix: "Check the resource, then its integrity."},
	IngestSignature: {Kind: Forbidden, Meaning: "The signature next to the resource does not match it.", Fix: "Sign it again: ssh-keygen -Y sign -n pwos-promptware@v1."},
	IngestUnproven:  {Kind: Forbidden, Meaning: "Nothing proves the resource, and the policy requires something to.", Fix: "Give its integrity, sign it, or pin its address."},
	IngestNoWeb:     {Kind: Forbidden, Meaning: "The kernel fetches no resources from the web.", Fix: "Name a resource below root."},
	IngestNoRoom:    {Kind: Insufficient, Meaning: "What the processes of the origin have adopted is as large as it may be.", Fix: "End some, or have them adopt less."},
}

package schema

import (
	"slices"
	"strings"
	"sync"
)

// Domain is the name of the state machine, and of its actor, that owns a syscall.
type Domain string

// Kernel is the domain of the syscalls about the kernel itself.
const Kernel Domain = "kernel"

// Grant defines which grant callers of a syscall need.
type Grant uint8

const (
	// ByCapability: callers need a token that names the syscall (CAP 2).
	ByCapability Grant = iota
	// Everyone: no token is needed (PROTOCOL 5).
	Everyone
	// OperatorOnly: no token suffices.
	OperatorOnly
	// ByName: callers need a token that names the syscall itself; a pattern of its domain, or *, does not suffice.
	ByName
)

// Syscall is one row of the syscall table: everything about a syscall except its implementation. Rows are declared as
// typed values, [Command], [Query], [Effect], [Step] and [Question], to which a domain binds its handlers.
type Syscall struct {
	Type        string
	Code        string   // CAP's name, such as SYS_ALLOC, if it has one
	Aliases     []string // other types with the same meaning; they are not listed
	Kind        Kind     // KindCommand or KindQuery
	Domain      Domain
	Grant       Grant
	Description string
	Script      string // file below test/ that shows it as a user sees it; the kernel's own commands have none
	Alone       bool   // it may take long, and runs alone on its connection
	Barrier     bool   // later frames of its connection wait until it is answered, because it changes their meaning
	Urgent      bool   // an operator's call may use the journal's reserve on a full disk
	Internal    bool   // a command of the kernel to itself: clients cannot call it
	Immediate   bool   // it does not wait for an approval, but is refused until there is one
	Outcome     string // the command that ends its effect, see EffectEnd; such a call is Alone

	input, output func() *Type
	ends          bool // it is the Outcome of another row
	index         int  // in the table
}

// Input returns the type of a request's data.
func (s *Syscall) Input() *Type { return s.input() }

// Output returns the type of a reply's data.
func (s *Syscall) Output() *Type { return s.output() }

// Index returns the index of the row in the table. It differs between kernel versions.
func (s *Syscall) Index() int { return s.index }

// Callable reports whether clients may be granted the syscall: it is neither the kernel's own command nor the
// prologue.
func (s *Syscall) Callable() bool { return !s.Internal && s != SyscallAuthenticate.Syscall }

// Ends reports whether the command is the Outcome of other rows, so that its entries have the outcomes of their calls.
func (s *Syscall) Ends() bool { return s.ends }

// rows returns the rows of all files of this package.
func rows() []*Syscall {
	return []*Syscall{
		SyscallPing.Syscall, SyscallEcho.Syscall, SyscallList.Syscall, SyscallDescribe.Syscall, SyscallCall.Syscall,
		SyscallCall.End.Syscall, SyscallShutdown.Syscall,
		SyscallRegister.Syscall, SyscallUnregister.Syscall, SyscallComplete.Syscall, SyscallProgress.Syscall, SyscallInvoke.Syscall, SyscallInvoke.End.Syscall,
		CapabilityGrant.Syscall, CapabilityGrantDefault.Syscall, CapabilityRevoke.Syscall, CapabilityRevokeExpired.Syscall,
		CapabilityWatch.Syscall, CapabilityEndow.Syscall, CapabilityStrip.Syscall, CapabilityRestore.Syscall,
		SyscallSpawn.Syscall, SyscallSpawn.End.Syscall, SyscallTerminate.Syscall, SyscallTerminate.End.Syscall, ProcessSettle.Syscall, ProcessList.Syscall, ProcessGet.Syscall, ProcessAttach.Syscall, ProcessPause.Syscall, ProcessResume.Syscall, ProcessRestoreFiles.Syscall, ProcessExplain.Syscall, ProcessSubscribe.Syscall,
		ProcessWatch.Syscall, ProcessPrepare.Syscall, ProcessExit.Syscall, ProcessNoteStart.Syscall, ProcessNoteEnd.Syscall,
		KernelIngest.Syscall, KernelIngest.End.Syscall, FileSystemHydrate.Syscall, FileSystemHydrate.End.Syscall,
		SyscallSendMsg.Syscall, SyscallSendMsg.End.Syscall, IPCAccept.Syscall, IPCTaken.Syscall, IPCSettle.Syscall, IPCReceive.Syscall, IPCSubscribe.Syscall, IPCAck.Syscall, IPCBroadcast.Syscall, IPCOpen.Syscall,
		IPCClose.Syscall, IPCAddress.Syscall, IPCDeliver.Syscall, IPCReturn.Syscall, IPCUnsend.Syscall, IPCResend.Syscall,
		SyscallAlloc.Syscall, SyscallRelease.Syscall, SyscallQuery.Syscall, CapabilityGet.Syscall, CapabilityCheck.Syscall,
		ResourceFree.Syscall,
		MemoryGet.Syscall, MemorySet.Syscall, MemoryCompareAndSet.Syscall, MemoryDelete.Syscall, MemoryList.Syscall, MemoryRestore.Syscall,
		SyscallCommitDelta.Syscall, SyscallRollback.Syscall, DeltaDrop.Syscall, SyscallCheckpoint.Syscall, SyscallGetState.Syscall,
		AuditLog.Syscall, AuditShow.Syscall, AuditMetrics.Syscall, AuditVerify.Syscall, AuditSubscribe.Syscall, AuditWatch.Syscall, AuditRedacted.Syscall, AuditRedact.Syscall, AuditRedact.End.Syscall, AuditArchive.Syscall, AuditArchive.End.Syscall,
		EventSearch.Syscall, EventGraph.Syscall,
		ClockGet.Syscall, ClockAdvance.Syscall,
		CryptoSeal.Syscall, CryptoOpen.Syscall, CryptoDerive.Syscall,
		SyscallAuthenticate.Syscall, KernelLoginFailed.Syscall,
		KernelThrottled.Syscall,
		KernelBooted.Syscall, KernelTakeOver.Syscall,
		HTTPFetch.Syscall, HTTPFetch.End.Syscall,
		NetConnect.Syscall, NetConnect.End.Syscall, NetRequest.Syscall, NetRequest.End.Syscall, NetPublish.Syscall, NetPublish.End.Syscall,
		FileSystemResolve.Syscall, HostToolUse.Syscall, ProgramExec.Syscall, ProgramExec.End.Syscall,
		BudgetShow.Syscall,
		PolicyReload.Syscall, PolicyReload.End.Syscall, PolicyShow.Syscall, PolicyLoaded.Syscall,
		ClusterStatus.Syscall, ClusterAsk.Syscall, ClusterQueue.Syscall, ClusterDrop.Syscall, ClusterDrop.End.Syscall, ClusterRefused.Syscall,
		JobStart.Syscall, JobStatus.Syscall, JobCancel.Syscall, JobList.Syscall, JobSubscribe.Syscall, JobWatch.Syscall,
		JobBegin.Syscall, JobEnd.Syscall,
		ApprovalList.Syscall, ApprovalDecide.Syscall, ApprovalSubscribe.Syscall, ApprovalWatch.Syscall,
		ApprovalRequested.Syscall, ApprovalUse.Syscall,
		StepBegin.Syscall, StepBegin.End.Syscall, StepEnd.Syscall, StepEnd.End.Syscall, PromptSubmit.Syscall, PromptSubmit.End.Syscall, StepEnded.Syscall, StepList.Syscall, StepGet.Syscall, StepDiff.Syscall,
		StepUndo.Syscall, StepUndo.End.Syscall, StepRedact.Syscall, StepRedact.End.Syscall, StepSubscribe.Syscall, StepWatch.Syscall,
		ReviewApply.Syscall, ReviewApply.End.Syscall, ReviewDiscard.Syscall, ReviewDiscard.End.Syscall,
		MessageReplay.Syscall, MessageUndo.Syscall, MessageUndo.End.Syscall,
	}
}

// The syscalls of this file.
var (
	SyscallPing = NewQuery[PingInput, PingOutput](Syscall{
		Type: "Syscall.Ping", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Returns the payload unchanged: shows that the kernel answers.",
	})

	SyscallEcho = NewCommand[EchoInput, EchoOutput](Syscall{
		Type: "Syscall.Echo", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Echoes the message, as a command.",
	})

	SyscallList = NewQuery[ListInput, ListOutput](Syscall{
		Type: "Syscall.List", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Names the syscalls that the caller may call. With follow, it also pushes later changes.",
	})

	SyscallDescribe = NewQuery[DescribeInput, DescribeOutput](Syscall{
		Type: "Syscall.Describe", Aliases: []string{"Sys.Describe"}, Domain: Kernel, Grant: Everyone,
		Script:      "scripts/kernel.txtar",
		Description: "Describes a syscall: its kind, what it does, and the JSON Schemas of its data and of its reply's data.",
	})

	SyscallCall = NewEffect[CallInput, Value](Syscall{
		Type: CallType, Domain: Process,
		Script:      "scripts/process.txtar",
		Description: "Calls a syscall by its short name, or user space by a path, and returns its answer. A short name needs the capability of its syscall alone; a path needs Syscall.Call.",
	}, Syscall{
		Type:        "Syscall.Called",
		Description: "Ends a Syscall.Call of a path: records the digest of the tool that ran, and its answer.",
	})

	SyscallShutdown = NewCommand[ShutdownInput, SuccessOutput](Syscall{
		Type: "Syscall.Shutdown", Domain: Kernel, Grant: OperatorOnly, Urgent: true,
		Script:      "scripts/shutdown.txtar",
		Description: "Ends the kernel cleanly: accepted calls are finished and answered.",
	})
)

type index struct {
	rows   []*Syscall
	byType map[string]*Syscall
}

// table returns the index of the syscall table, which is built once and immutable.
var table = sync.OnceValue(func() *index {
	x := &index{rows: rows(), byType: make(map[string]*Syscall)}
	slices.SortFunc(x.rows, func(a, b *Syscall) int { return strings.Compare(a.Type, b.Type) })
	for i, row := range x.rows {
		row.index = i
		for _, name := range append(row.Aliases, row.Type) {
			if x.byType[name] != nil {
				panic("schema: two rows are named " + name)
			}
			x.byType[name] = row
		}
	}
	return x
})

// Syscalls returns the syscall table, sorted by type. It is shared and must not be changed.
func Syscalls() []*Syscall { return table().rows }

// Lookup returns the row of a syscall by its type or an alias.
func Lookup(typ string) (*Syscall, bool) {
	row, ok := table().byType[typ]
	return row, ok
}

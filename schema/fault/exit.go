package fault

// The exit statuses of a command that ends with a fault (PROTOCOL 8 and 12).
const (
	ExitError       = 1   // the call failed
	ExitUsage       = 2   // wrong usage
	ExitDenied      = 3   // denied, or not authenticated
	ExitNotFound    = 4   // not found
	ExitQuota       = 5   // over a quota
	ExitUnreachable = 6   // the kernel, or another one that was asked, cannot be reached: nothing was done
	ExitUnknown     = 7   // timed out, or the outcome is unknown: it may have been done
	ExitConflict    = 8   // conflict
	ExitPending     = 9   // waits for an approval
	ExitIntegrity   = 10  // an integrity check failed
	ExitNotRunnable = 126 // the program was found and cannot be executed, as in shells
	ExitNotStarted  = 127 // the program could not be started, as in shells
)

// exits has the ids whose exit status is not that of their kind, because the kind does not say whether the call was done.
var exits = map[ID]int{
	UsageInvalid:       ExitUsage,
	ProcessNotStarted:  ExitNotStarted,
	ProcessNotRunnable: ExitNotRunnable,

	AuthBusy:          ExitUnreachable,
	DaemonNotRunning:  ExitUnreachable,
	DaemonNoAnswer:    ExitUnreachable,
	DaemonUnreachable: ExitUnreachable,
	DaemonLaunch:      ExitUnreachable,
	DaemonHungUp:      ExitUnreachable,
	DaemonInside:      ExitUnreachable,
	KernelStopping:    ExitUnreachable,
	ClusterAway:       ExitUnreachable,
	ClusterBus:        ExitUnreachable,
	ClusterKernelAway: ExitUnreachable,

	CallCancelled:     ExitUnknown,
	ClusterFenced:     ExitUnknown,
	ClusterUnknown:    ExitUnknown,
	JournalLost:       ExitUnknown,
	KernelInterrupted: ExitUnknown,
	ProviderBadAnswer: ExitUnknown,
	ProviderDied:      ExitUnknown,

	BackupBroken:    ExitIntegrity,
	CryptoBroken:    ExitIntegrity,
	IngestIntegrity: ExitIntegrity,
	SealBroken:      ExitIntegrity,
	StateDamaged:    ExitIntegrity,
}

// Exit returns the exit status of a command that ends with a fault of the id.
func (id ID) Exit() int { return (&Fault{ID: id, Kind: id.Kind()}).Exit() }

// Exit returns the exit status of a command that ends with the fault. An id of a newer kernel has that of its kind.
func (f *Fault) Exit() int {
	if code, ok := exits[f.ID]; ok {
		return code
	}
	return kinds[f.Kind].exit
}

package schema

// Errand is a call that this kernel makes at another kernel. The calling kernel stores it until it has recorded the outcome. Exactly
// one of Spawn and Terminate is set.
type Errand struct {
	Number      int64           `json:"number" keep:"always" min:"1" doc:"Number of the call at the kernel that makes it."`
	Kernel      string          `json:"kernel" keep:"always" doc:"Kernel that it is for."`
	PID         int64           `json:"pid" keep:"always" min:"0" doc:"Process that made it; 0 is the operator."`
	Spawn       *SpawnInput     `json:"spawn,omitzero" keep:"always" doc:"Data of a Syscall.Spawn."`
	Terminate   *TerminateInput `json:"terminate,omitzero" keep:"always" doc:"Data of a Syscall.Terminate."`
	Default     bool            `json:"default,omitzero" keep:"always" doc:"Whether the capabilities of spawn are a default grant: the other kernel leaves out those that it does not allow."`
	TicksLeft   *int64          `json:"ticks_left,omitzero" keep:"always" doc:"Ticks for which the grant of a Syscall.Spawn holds; absent: it does not expire. Each kernel has its own clock."`
	Causation   string          `json:"causation,omitzero" keep:"always" doc:"Id of the message that made it."`
	Correlation string          `json:"correlation,omitzero" keep:"always" doc:"Id of the workflow that it belongs to."`
}

// Type returns the type of the syscall that the other kernel runs.
func (e *Errand) Type() string {
	if e.Terminate != nil {
		return SyscallTerminate.Type
	}
	return SyscallSpawn.Type
}

// ErrandSettled is the data of the kernel's own Process.Settle.
type ErrandSettled struct {
	Number int64  `json:"number" keep:"always" min:"1" doc:"Number of the call."`
	Kernel string `json:"kernel" keep:"always" doc:"Kernel that it was for."`
}

// ClusterAskInput is the data of Cluster.Ask.
type ClusterAskInput struct {
	Kernel string `json:"kernel" keep:"always" minlen:"1" maxlen:"32" doc:"Kernel of the cluster to ask."`
	Type   string `json:"type" keep:"always" minlen:"1" maxlen:"64" doc:"The query, such as Process.List."`
	Data   Value  `json:"data,omitzero" keep:"always" doc:"Its data. Default: {}."`
}

// ClusterAskOutput is the answer of Cluster.Ask.
type ClusterAskOutput struct {
	Kernel string `json:"kernel" keep:"always" doc:"Kernel that answered."`
	Seq    int64  `json:"seq" keep:"always" doc:"Entry of the query in the record there."`
	Data   Value  `json:"data" keep:"always" doc:"The answer."`
}

// Asked returns the queries that other kernels may send with Cluster.Ask: those that show processes and the record.
func Asked() []*Syscall {
	return []*Syscall{
		ProcessList.Syscall, ProcessGet.Syscall, CapabilityGet.Syscall, BudgetShow.Syscall, ClockGet.Syscall, ClusterStatus.Syscall,
		AuditLog.Syscall, AuditShow.Syscall, AuditMetrics.Syscall, EventGraph.Syscall, EventSearch.Syscall, ApprovalList.Syscall,
	}
}

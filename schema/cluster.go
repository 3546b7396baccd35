package schema

// ClusterStatusInput is the data of Cluster.Status.
type ClusterStatusInput struct{}

// ClusterStatusOutput is the answer of Cluster.Status.
type ClusterStatusOutput struct {
	Name        string          `json:"name" keep:"always" doc:"Name of this kernel."`
	Bus         string          `json:"bus" keep:"always" doc:"Addresses of the bus."`
	Connected   bool            `json:"connected" keep:"always" doc:"Whether the bus can be reached now."`
	Acknowledge string          `json:"acknowledge" keep:"always" doc:"When a command is answered: disk: once it is on the disk of this kernel; quorum: once a majority of the bus has it too."`
	Synced      int64           `json:"synced" keep:"always" doc:"The last entry on the disk of this kernel."`
	Copied      int64           `json:"copied" keep:"always" doc:"The last entry that the bus has acknowledged; 0: none since the start of this kernel."`
	Behind      int64           `json:"behind" keep:"always" doc:"How many entries the copy is behind."`
	Alarm       string          `json:"alarm,omitzero" keep:"always" doc:"Why the copy has stopped for good; absent: it has not."`
	Trouble     string          `json:"trouble,omitzero" keep:"always" doc:"The present problem; absent: none."`
	Epoch       int64           `json:"epoch,omitzero" keep:"always" doc:"The epoch of its record, which a take-over raises; absent: no start could be recorded."`
	Standbys    []string        `json:"standbys,omitzero" keep:"always" doc:"Fingerprints of the keys of other hosts that may take this kernel over; absent: none."`
	Lease       string          `json:"lease,omitzero" keep:"always" doc:"held: this host leads, and a standby knows it; lost: it does not at present, so nothing is answered that another host may know better. Absent: no standby is waited for."`
	Members     []ClusterMember `json:"members" keep:"always" doc:"The other kernels of the members file, by name; as many as a line holds."`
	Refused     []string        `json:"refused,omitzero" keep:"always" doc:"Lines of the members file that are ignored, and why; absent: none."`
	Node        string          `json:"node,omitzero" keep:"always" doc:"The node of the bus that this kernel is connected to; absent: none. With quorum it is the one that leads the stream of the kernel, if it can be reached."`
}

// ClusterMember is another kernel in the members file.
type ClusterMember struct {
	Name    string   `json:"name" keep:"always" doc:"Its name."`
	Key     string   `json:"key" keep:"always" doc:"Fingerprint of its host key."`
	Allow   []string `json:"allow" keep:"always" doc:"What it may call here."`
	Queued  int64    `json:"queued,omitzero" keep:"always" doc:"How many messages to it are not settled; absent: none."`
	Trouble string   `json:"trouble,omitzero" keep:"always" doc:"Why the latest attempt to reach it failed; absent: it did not."`
	Role    string   `json:"role,omitzero" keep:"always" doc:"What its operator may do here: viewer or approver; absent: nothing."`
}

// ClusterQueueInput is the data of Cluster.Queue.
type ClusterQueueInput struct{}

// ClusterQueueOutput is the answer of Cluster.Queue.
type ClusterQueueOutput struct {
	Messages []QueuedMessage `json:"messages" keep:"always" doc:"The messages to other kernels that have no outcome yet, by kernel, process and number; as many as a line holds."`
	More     int64           `json:"more,omitzero" keep:"always" doc:"How many others there are; absent: none."`
}

// QueuedMessage is a message that waits for another kernel.
type QueuedMessage struct {
	MsgID       int64  `json:"msg_id" keep:"always" doc:"Its number."`
	SenderPID   int64  `json:"sender_pid" keep:"always" doc:"Process that sent it; 0 is the operator."`
	ReceiverPID int64  `json:"receiver_pid" keep:"always" doc:"Process that it is for; 0 is the operator."`
	Kernel      string `json:"kernel" keep:"always" doc:"Kernel that it is for."`
	Bytes       int64  `json:"bytes" keep:"always" doc:"Its length, encoded and with its metadata."`
	Sent        bool   `json:"sent,omitzero" keep:"always" doc:"Whether the other kernel may have it; absent: no."`
	Reason      string `json:"reason,omitzero" keep:"always" doc:"Why it waits; absent: it is its turn."`
}

// ClusterDropInput is the data of Cluster.Drop.
type ClusterDropInput struct {
	MsgID int64 `json:"msg_id" keep:"always" min:"1" doc:"Number of the message, as Cluster.Queue shows it."`
}

// ClusterDropOutput is the answer of Cluster.Drop.
type ClusterDropOutput struct {
	MsgID       int64  `json:"msg_id" keep:"always" doc:"Number of the message."`
	ReceiverPID int64  `json:"receiver_pid" keep:"always" doc:"Process that it was for."`
	Kernel      string `json:"kernel" keep:"always" doc:"Kernel that it was for."`
	Sent        bool   `json:"sent,omitzero" keep:"always" doc:"Whether the other kernel may have it all the same; absent: no."`
}

// RefusedInput is the data of the kernel's own Cluster.Refused.
type RefusedInput struct {
	Kernel  string `json:"kernel" keep:"always" doc:"The other kernel, by the name that it uses."`
	Sent    bool   `json:"sent" keep:"always" doc:"Whether this kernel made the request; else the other did."`
	ErrorID string `json:"error_id" keep:"always" doc:"Id of the error."`
	Reason  string `json:"reason" keep:"always" doc:"Why it was refused."`
	More    int64  `json:"more,omitzero" keep:"always" doc:"How many others were refused since the last record; absent: none."`
}

// The syscalls of a cluster (PROTOCOL 13).
var (
	ClusterStatus = NewQuery[ClusterStatusInput, ClusterStatusOutput](Syscall{
		Type: "Cluster.Status", Domain: Kernel, Grant: OperatorOnly,
		Script:      "scripts/cluster.txtar",
		Description: "Shows how this kernel is in its cluster: whether it reaches the bus, how far behind the copy of its journal is, and the other kernels.",
	})

	ClusterAsk = NewQuery[ClusterAskInput, ClusterAskOutput](Syscall{
		Type: "Cluster.Ask", Domain: Kernel, Grant: OperatorOnly, Alone: true,
		Script:      "scripts/abroad.txtar",
		Description: "Makes a query at another kernel of the cluster and returns its answer: a query about processes, grants, budgets, the record, the clock or the cluster. The line of this kernel in the members file there decides whether it is answered.",
	})

	ClusterQueue = NewQuery[ClusterQueueInput, ClusterQueueOutput](Syscall{
		Type: "Cluster.Queue", Domain: Kernel, Grant: OperatorOnly,
		Script:      "scripts/cluster.txtar",
		Description: "Lists the messages to other kernels that have no outcome yet, and why each waits.",
	})

	ClusterDrop = NewEffect[ClusterDropInput, ClusterDropOutput](Syscall{
		Type: "Cluster.Drop", Domain: Kernel, Grant: OperatorOnly,
		Script:      "scripts/cluster.txtar",
		Description: "Drops a message to another kernel: it is not sent any more. One that was sent may have arrived.",
	}, Syscall{
		Type:        "Cluster.Dropped",
		Description: "Ends a Cluster.Drop: records which message was dropped.",
	})

	ClusterRefused = NewStep[RefusedInput, RefusedInput](Syscall{
		Type: "Cluster.Refused", Domain: Kernel,
		Description: "Records that a request between two kernels was refused before any call was made.",
	})
)

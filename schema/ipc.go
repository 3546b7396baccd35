package schema

// Ipc is the domain of the mailboxes.
const Ipc Domain = "ipc"

func ipcRows() []Syscall {
	return []Syscall{
		{
			Type: "Syscall.SendMsg", Code: "SYS_SEND_MSG", Kind: Command, Domain: Ipc, Input: TypeOf[SendMsgInput](), Output: TypeOf[SendMsgOutput](),
			Description: "Puts a message into a process's mailbox, or into every mailbox but the sender's.",
		},
		{
			Type: "Ipc.Receive", Kind: Command, Domain: Ipc, Alone: true, Input: TypeOf[ReceiveInput](), Output: TypeOf[ReceiveOutput](),
			Description: "Takes messages out of the caller's mailbox, urgent ones first, else in the order in which they came. It can wait for the first.",
		},
		{
			Type: "Ipc.Broadcast", Kind: Command, Domain: Ipc, Input: TypeOf[BroadcastInput](), Output: TypeOf[BroadcastOutput](),
			Description: "Puts a message into every mailbox but the sender's, and says who got it.",
		},
		{
			Type: "Ipc.Open", Kind: Command, Domain: Ipc, Internal: true, Input: TypeOf[MailboxInput](), Output: TypeOf[SuccessOutput](),
			Description: "Makes mailboxes, where there are none yet.",
		},
		{
			Type: "Ipc.Close", Kind: Command, Domain: Ipc, Internal: true, Input: TypeOf[MailboxInput](), Output: TypeOf[SuccessOutput](),
			Description: "Drops mailboxes with what is in them.",
		},
		{
			Type: "Ipc.Address", Kind: Command, Domain: Ipc, Internal: true, Input: TypeOf[MailboxInput](), Output: TypeOf[SuccessOutput](),
			Description: "Notes who gets the broadcast that is about to be made.",
		},
	}
}

// SendMsgInput is the data of Syscall.SendMsg.
type SendMsgInput struct {
	Target
	ReceiverPID   int64   `json:"receiver_pid" min:"0" doc:"Process to send to; 0 sends to every mailbox but the sender's."`
	Intent        *string `json:"intent,omitzero" maxlen:"256" doc:"What the message is about. Receivers can select by it, governance can deny by it."`
	Payload       Value   `json:"payload" doc:"Any JSON value."`
	Priority      *string `json:"priority,omitzero" enum:"LOW NORMAL HIGH URGENT" doc:"URGENT is received before all others. Default NORMAL."`
	ExpiresAtTick *int64  `json:"expires_at_tick,omitzero" min:"0" doc:"Last tick at which it may be received. Default: it does not expire."`
}

// SendMsgOutput is what Syscall.SendMsg answers.
type SendMsgOutput struct {
	ReceiverPID int64  `json:"receiver_pid" doc:"The receiver."`
	Status      string `json:"status" enum:"DELIVERED MAILBOX_FULL EXPIRED BLOCKED_BY_GOVERNANCE" doc:"What became of the message."`
	MsgID       int64  `json:"msg_id" doc:"Number of the message, from 1, never used again."`
	Reason      string `json:"reason,omitzero" doc:"Why it was not delivered."`
}

// BroadcastInput is the data of Ipc.Broadcast.
type BroadcastInput struct {
	Target
	Intent  *string `json:"intent,omitzero" maxlen:"256" doc:"What the message is about."`
	Payload Value   `json:"payload" doc:"Any JSON value."`
}

// BroadcastOutput is what Ipc.Broadcast answers.
type BroadcastOutput struct {
	Delivered   []int64 `json:"delivered" doc:"Processes that got the message, ascending."`
	MailboxFull []int64 `json:"mailbox_full" doc:"Processes whose mailbox had no room, ascending."`
}

// ReceiveInput is the data of Ipc.Receive.
type ReceiveInput struct {
	Target
	Max    *int64  `json:"max,omitzero" min:"1" max:"1000" doc:"Most messages to take, 1 to 1000. Default 1. Fewer come where the line would be too long."`
	Intent *string `json:"intent,omitzero" maxlen:"256" doc:"Only messages of this intent."`
	WaitMS *int64  `json:"wait_ms,omitzero" min:"0" max:"600000" doc:"How long to wait for a first message, in milliseconds, 0 to 600000. Default 0."`
}

// ReceiveOutput is what Ipc.Receive answers.
type ReceiveOutput struct {
	Messages []MailMessage `json:"messages" doc:"Messages, taken out of the mailbox, in the order in which they are to be read."`
}

// MailMessage is one message of a mailbox.
type MailMessage struct {
	MsgID         int64  `json:"msg_id" doc:"Number of the message."`
	SenderPID     int64  `json:"sender_pid" doc:"Process that sent it; 0 is the operator."`
	ReceiverPID   int64  `json:"receiver_pid" doc:"Process that it was sent to."`
	Intent        string `json:"intent" doc:"What it is about."`
	Payload       Value  `json:"payload" doc:"What it says."`
	Priority      string `json:"priority" doc:"How urgent it is."`
	SentTick      int64  `json:"sent_tick" doc:"Tick at which it was sent."`
	ExpiresAtTick *int64 `json:"expires_at_tick,omitzero" doc:"Last tick at which it may be received."`
}

// MailboxInput is the data of the kernel's own Ipc.Open, Ipc.Close and Ipc.Address.
type MailboxInput struct {
	PIDs []int64 `json:"pids" doc:"Processes whose mailbox is meant."`
}

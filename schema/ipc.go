package schema

import (
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Ipc is the domain of mailboxes.
const Ipc Domain = "ipc"

// The syscalls of this file.
var (
	SyscallSendMsg = NewPartialEffect[SendMsgInput, SendMsgOutput](Syscall{
		Type: "Syscall.SendMsg", Code: "SYS_SEND_MSG", Domain: Ipc,
		Script:      "scripts/ipc.txtar",
		Description: "Sends a message to a process's mailbox, here or at another kernel of the cluster. Receiver 0 is the operator for an agent, and every process for the operator; at another kernel it is the operator.",
	}, Syscall{
		Type:        "Ipc.Sent",
		Description: "Ends a Syscall.SendMsg to another kernel: records its outcome.",
	})

	IPCReceive = NewCommand[ReceiveInput, ReceiveOutput](Syscall{
		Type: "Ipc.Receive", Domain: Ipc, Alone: true,
		Script:      "scripts/ipc.txtar",
		Description: "Takes messages out of the caller's mailbox, urgent ones first, then in order of arrival. It can wait for the first one.",
	})

	IPCSubscribe = NewCommand[MailSubscribeInput, MailSubscribeOutput](Syscall{
		Type: "Ipc.Subscribe", Domain: Ipc,
		Script:      "scripts/ipc.txtar",
		Description: "Pushes the messages of the caller's mailbox, present and new, on this connection until it closes, as events Ipc.MessageDelivered.",
	})

	IPCAck = NewCommand[MailAckInput, MailAckOutput](Syscall{
		Type: "Ipc.Ack", Domain: Ipc,
		Script:      "scripts/ipc.txtar",
		Description: "Acknowledges messages that were delivered with ack. A message that is not acknowledged when its connection ends is delivered again.",
	})

	IPCBroadcast = NewCommand[BroadcastInput, BroadcastOutput](Syscall{
		Type: "Ipc.Broadcast", Domain: Ipc,
		Script:      "scripts/ipc.txtar",
		Description: "Puts a message into the mailbox of every process but the sender's, and says who got it.",
	})

	IPCOpen = NewStep[MailboxInput, SuccessOutput](Syscall{
		Type: "Ipc.Open", Domain: Ipc,
		Description: "Makes mailboxes for processes that have none.",
	})

	IPCClose = NewStep[MailboxInput, SuccessOutput](Syscall{
		Type: "Ipc.Close", Domain: Ipc,
		Description: "Drops mailboxes with what is in them.",
	})

	IPCAddress = NewStep[MailboxInput, SuccessOutput](Syscall{
		Type: "Ipc.Address", Domain: Ipc,
		Description: "Records the receivers of a broadcast before it is made.",
	})

	IPCDeliver = NewStep[MailDeliverInput, ReceiveOutput](Syscall{
		Type: "Ipc.Deliver", Domain: Ipc,
		Description: "Takes messages out of a mailbox in order to push them to its subscriber.",
	})

	IPCUnsend = NewStep[UnsendInput, UnsendOutput](Syscall{
		Type: "Ipc.Unsend", Domain: Ipc,
		Description: "Undoes the sending of a message: takes it out of the mailboxes in which it is unread.",
	})

	IPCResend = NewStep[ResendInput, SuccessOutput](Syscall{
		Type: "Ipc.Resend", Domain: Ipc,
		Description: "Undoes an Ipc.Unsend: puts the message into its place in the mailboxes again.",
	})

	IPCAccept = NewStep[AcceptInput, AcceptOutput](Syscall{
		Type: "Ipc.Accept", Domain: Ipc,
		Description: "Takes a message of another kernel into a mailbox, for the process of that kernel, which needs Syscall.SendMsg. A message is taken once: a repeated one is recognised.",
	})

	IPCTaken = NewQuestion[TakenInput, TakenOutput](Syscall{
		Type: "Ipc.Taken", Domain: Ipc,
		Description: "Tells whether a message of another kernel was taken into a mailbox, also if the process has ended since.",
	})

	IPCSettle = NewStep[SettleInput, SuccessOutput](Syscall{
		Type: "Ipc.Settle", Domain: Ipc,
		Description: "Records the outcome of a message to another kernel: it is not sent again.",
	})

	IPCReturn = NewStep[MailReturnInput, SuccessOutput](Syscall{
		Type: "Ipc.Return", Domain: Ipc,
		Description: "Ends the subscriptions of a connection to mailboxes. Messages that it has not acknowledged are delivered again.",
	})
)

// SendMsgInput is the data of Syscall.SendMsg.
type SendMsgInput struct {
	Target
	ReceiverPID    int64    `json:"receiver_pid" keep:"always" min:"0" doc:"Process to send to. 0 is the operator; from the operator, 0 is every process."`
	ReceiverKernel *string  `json:"receiver_kernel,omitzero" keep:"always" minlen:"1" maxlen:"32" doc:"Kernel of the cluster that the process is of. Default: this one. 0 is then that kernel's operator."`
	Intent         *string  `json:"intent,omitzero" keep:"always" maxlen:"256" doc:"What the message is about. Receivers can select by it, governance can deny by it."`
	Payload        Value    `json:"payload,omitzero" keep:"always" doc:"Any JSON value, nested at most 56 levels deep."`
	PayloadRef     *BlobRef `json:"payloadRef,omitzero" instead:"payload" keep:"always" doc:"The payload, by reference: a file in the blob directory that holds one JSON value of at most 1000000 bytes."`
	Priority       *string  `json:"priority,omitzero" keep:"always" enum:"LOW NORMAL HIGH URGENT" doc:"URGENT is received before all others. Default NORMAL."`
	ExpiresAtTick  *int64   `json:"expires_at_tick,omitzero" keep:"always" min:"0" doc:"Last tick at which it may be received. Default: it does not expire."`
}

// Reference implements Referring.
func (in *SendMsgInput) Reference() (member string, given bool, ref *BlobRef) {
	return "payload", in.Payload != nil, in.PayloadRef
}

// Abroad reports whether the receiver is a process of another kernel, so that the call is an effect.
func (in *SendMsgInput) Abroad() bool { return in.ReceiverKernel != nil }

// TakesLong reports whether the call waits for another kernel, so that it runs alone on its connection.
func (in *SendMsgInput) TakesLong() bool { return in.Abroad() }

// SendMsgOutput is the answer of Syscall.SendMsg.
type SendMsgOutput struct {
	ReceiverPID int64  `json:"receiver_pid" keep:"always" doc:"The receiver."`
	Status      string `json:"status" keep:"always" enum:"DELIVERED QUEUED MAILBOX_FULL EXPIRED BLOCKED_BY_GOVERNANCE" doc:"What happened to the message. QUEUED: this kernel keeps it until the other kernel can be reached."`
	MsgID       int64  `json:"msg_id" keep:"always" doc:"Number of the message, from 1, never used again."`
	Reason      string `json:"reason,omitzero" keep:"always" doc:"Why it was not delivered."`

	ReceiverKernel string `json:"receiver_kernel,omitzero" keep:"always" doc:"Kernel of the cluster that the receiver is of; absent: this one."`
}

// AppendJSON appends the answer.
func (o SendMsgOutput) AppendJSON(dst []byte) []byte {
	dst = append(slices.Grow(dst, 96), `{"receiver_pid":`...)
	dst = strconv.AppendInt(dst, o.ReceiverPID, 10)
	dst = jsontype.AppendString(append(dst, `,"status":`...), o.Status)
	dst = strconv.AppendInt(append(dst, `,"msg_id":`...), o.MsgID, 10)
	dst = appendMember(dst, `,"reason":`, o.Reason)
	return append(appendMember(dst, `,"receiver_kernel":`, o.ReceiverKernel), '}')
}

// BroadcastInput is the data of Ipc.Broadcast.
type BroadcastInput struct {
	Target
	Intent     *string  `json:"intent,omitzero" keep:"always" maxlen:"256" doc:"What the message is about."`
	Payload    Value    `json:"payload,omitzero" keep:"always" doc:"Any JSON value, nested at most 56 levels deep."`
	PayloadRef *BlobRef `json:"payloadRef,omitzero" instead:"payload" keep:"always" doc:"The payload, by reference: a file in the blob directory that holds one JSON value of at most 1000000 bytes."`
}

// Reference implements Referring.
func (in *BroadcastInput) Reference() (member string, given bool, ref *BlobRef) {
	return "payload", in.Payload != nil, in.PayloadRef
}

// BroadcastOutput is the answer of Ipc.Broadcast.
type BroadcastOutput struct {
	Delivered   []int64 `json:"delivered" keep:"always" doc:"Processes that got the message, ascending."`
	MailboxFull []int64 `json:"mailbox_full" keep:"always" doc:"Processes whose mailbox had no room, ascending."`
}

// MaxReceive is the largest number of messages of one Ipc.Receive.
const MaxReceive = 1000

// ReceiveInput is the data of Ipc.Receive.
type ReceiveInput struct {
	Target
	Max    *int64  `json:"max,omitzero" keep:"always" min:"1" max:"1000" doc:"Most messages to take, 1 to 1000, which is the default too. Fewer come if the line would be too long."`
	Intent *string `json:"intent,omitzero" keep:"always" maxlen:"256" doc:"Only messages of this intent."`
	WaitMS *int64  `json:"wait_ms,omitzero" keep:"always" min:"0" max:"600000" doc:"How long to wait for a first message, in milliseconds, 0 to 600000. Default 0."`
	Ack    *bool   `json:"ack,omitzero" keep:"always" doc:"Keep each message in the mailbox until Ipc.Ack names it, and deliver it again if this connection closes first. Default false."`
}

// ReceiveOutput is the answer of Ipc.Receive.
type ReceiveOutput struct {
	Messages []MailMessage `json:"messages" keep:"always" doc:"The messages, in the order in which to read them."`
}

// MailMessage is one message of a mailbox.
type MailMessage struct {
	MsgID         int64  `json:"msg_id" keep:"always" doc:"Number of the message."`
	SenderPID     int64  `json:"sender_pid" keep:"always" doc:"Process that sent it; 0 is the operator."`
	SenderKernel  string `json:"sender_kernel,omitzero" keep:"always" doc:"Kernel of the cluster that the sender is of; absent: this one."`
	ReceiverPID   int64  `json:"receiver_pid" keep:"always" doc:"Process that it was sent to; 0 is the operator."`
	Intent        string `json:"intent" keep:"always" doc:"What it is about."`
	Payload       Value  `json:"payload" keep:"always" doc:"What it says."`
	Priority      string `json:"priority" keep:"always" doc:"How urgent it is."`
	SentTick      int64  `json:"sent_tick" keep:"always" doc:"Tick at which it was sent."`
	ExpiresAtTick *int64 `json:"expires_at_tick,omitzero" keep:"always" doc:"Last tick at which it may be received."`
	Redelivered   bool   `json:"redelivered,omitzero" keep:"always" doc:"It was delivered before, and not acknowledged."`
	Causation     string `json:"causation,omitzero" keep:"always" doc:"Id of the message that sent it."`
	Correlation   string `json:"correlation,omitzero" keep:"always" doc:"Id of the workflow that the sending belongs to."`
}

// AppendJSON appends the answer with payloads as they were sent.
func (o ReceiveOutput) AppendJSON(dst []byte) []byte {
	const around = 160 // about the size of a message without its texts
	size := len(`{"messages":[]}`)
	for i := range o.Messages {
		m := &o.Messages[i]
		size += around + len(m.Intent) + len(m.Payload) + len(m.Causation) + len(m.Correlation)
	}
	dst = append(slices.Grow(dst, size), `{"messages":[`...)
	for i := range o.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = o.Messages[i].AppendJSON(dst)
	}
	return append(dst, "]}"...)
}

// AppendJSON appends the message with its payload as it was sent.
func (m *MailMessage) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"msg_id":`...), m.MsgID, 10)
	dst = strconv.AppendInt(append(dst, `,"sender_pid":`...), m.SenderPID, 10)
	dst = appendMember(dst, `,"sender_kernel":`, m.SenderKernel)
	dst = strconv.AppendInt(append(dst, `,"receiver_pid":`...), m.ReceiverPID, 10)
	dst = jsontype.AppendString(append(dst, `,"intent":`...), m.Intent)
	dst = append(append(dst, `,"payload":`...), m.Payload...)
	dst = jsontype.AppendString(append(dst, `,"priority":`...), m.Priority)
	dst = strconv.AppendInt(append(dst, `,"sent_tick":`...), m.SentTick, 10)
	if m.ExpiresAtTick != nil {
		dst = strconv.AppendInt(append(dst, `,"expires_at_tick":`...), *m.ExpiresAtTick, 10)
	}
	if m.Redelivered {
		dst = append(dst, `,"redelivered":true`...)
	}
	dst = appendMember(dst, `,"causation":`, m.Causation)
	return append(appendMember(dst, `,"correlation":`, m.Correlation), '}')
}

// MailSubscribeInput is the data of Ipc.Subscribe.
type MailSubscribeInput struct {
	Target
	Ack *bool `json:"ack,omitzero" keep:"always" doc:"Keep each message until Ipc.Ack names it, and deliver it again if this connection ends before. Default false."`
}

// MailSubscribeOutput is the answer of Ipc.Subscribe.
type MailSubscribeOutput struct {
	ReceiverPID int64 `json:"receiver_pid" keep:"always" doc:"Process whose mailbox is followed."`
	Ack         bool  `json:"ack" keep:"always" doc:"Whether messages have to be acknowledged."`
}

// MailAckInput is the data of Ipc.Ack.
type MailAckInput struct {
	Target
	MsgIDs []int64 `json:"msg_ids" keep:"always" min:"1" doc:"Numbers of the messages."`
}

// MailAckOutput is the answer of Ipc.Ack.
type MailAckOutput struct {
	Acknowledged []int64 `json:"acknowledged" keep:"always" doc:"Those that waited for it, in the order in which they were named. Any other was acknowledged before, or was not delivered with ack."`
}

// MailDeliverInput is the data of the kernel's own Ipc.Deliver.
type MailDeliverInput struct {
	Max int64 `json:"max" keep:"always" doc:"Most messages to take."`
	Ack bool  `json:"ack" keep:"always" doc:"Whether the subscriber acknowledges them."`
}

// MailReturnInput is the data of the kernel's own Ipc.Return.
type MailReturnInput struct {
	PIDs []int64 `json:"pids" keep:"always" doc:"Processes whose mailbox is meant."`
	Conn string  `json:"conn" keep:"always" doc:"The connection that has ended; empty: all have."`
}

// MailboxInput is the data of the kernel's own Ipc.Open, Ipc.Close and Ipc.Address.
type MailboxInput struct {
	PIDs []int64 `json:"pids" keep:"always" doc:"Processes whose mailbox is meant."`
}

// UnsendInput is the data of the kernel's own Ipc.Unsend.
type UnsendInput struct {
	Undoes
	MsgID int64   `json:"msg_id" keep:"always" doc:"Number of the message."`
	PIDs  []int64 `json:"pids" keep:"always" doc:"Processes that got it, ascending."`
}

// UnsendOutput is the answer of Ipc.Unsend.
type UnsendOutput struct {
	Taken []int64 `json:"taken" keep:"always" doc:"Processes whose mailbox had it unread, ascending."`
	Read  []int64 `json:"read" keep:"always" doc:"The others."`
}

// ResendInput is the data of the kernel's own Ipc.Resend.
type ResendInput struct {
	Undoes
	PIDs    []int64     `json:"pids" keep:"always" doc:"Processes whose mailbox it is put into."`
	Message MailMessage `json:"message" keep:"always" doc:"The message, without its payload."`
	Text    string      `json:"text" keep:"always" doc:"The payload, exactly as it was sent."`
	Origin  string      `json:"origin,omitzero" keep:"always" doc:"Of its sender, in the operator's mailbox."`
}

// Posted is a message to another kernel.
type Posted struct {
	MsgID       int64  `json:"msg_id" keep:"always" min:"1" doc:"Number of the message at the sending kernel."`
	SenderPID   int64  `json:"sender_pid" keep:"always" min:"0" doc:"Process that sent it; 0 is the operator."`
	ReceiverPID int64  `json:"receiver_pid" keep:"always" min:"0" doc:"Process that it is for; 0 is the operator."`
	Intent      string `json:"intent,omitzero" keep:"always" maxlen:"256" doc:"What it is about."`
	Payload     Value  `json:"payload" keep:"always" doc:"What it says."`
	Priority    string `json:"priority,omitzero" keep:"always" enum:"LOW NORMAL HIGH URGENT" doc:"How urgent it is."`
	TicksLeft   *int64 `json:"ticks_left,omitzero" keep:"always" doc:"Ticks in which it may be received; less than 0: it has expired; absent: it does not expire. Each kernel has its own clock."`
	Causation   string `json:"causation,omitzero" keep:"always" doc:"Id of the message that sent it."`
	Correlation string `json:"correlation,omitzero" keep:"always" doc:"Id of the workflow that the sending belongs to."`
}

// Letter is a message in the outbox of a kernel. It is sent again until it is settled.
type Letter struct {
	Posted
	Kernel        string // receiving kernel
	ExpiresAtTick *int64 // on the clock of the sending kernel; TicksLeft is computed from it
}

// AcceptInput is the data of the kernel's own Ipc.Accept.
type AcceptInput struct {
	Kernel   string `json:"kernel" keep:"always" doc:"Kernel that the message is of."`
	Instance string `json:"instance" keep:"always" doc:"State directory of that kernel, which numbers its messages."`
	Epoch    int64  `json:"epoch" keep:"always" doc:"Epoch of that state directory."`
	Posted
}

// Mark names the message for Ipc.Taken.
func (in *AcceptInput) Mark() *TakenInput {
	return &TakenInput{Kernel: in.Kernel, Instance: in.Instance, Epoch: in.Epoch, MsgID: in.MsgID, ReceiverPID: in.ReceiverPID}
}

// Outcomes of Ipc.Accept and Ipc.Settle, in addition to those of Syscall.SendMsg.
const (
	MailDelivered = "DELIVERED"
	MailQueued    = "QUEUED"
	MailExpired   = "EXPIRED"
	MailBlocked   = "BLOCKED_BY_GOVERNANCE"
	MailRefused   = "REFUSED" // the other kernel answered with an error
	MailDropped   = "DROPPED" // the operator dropped it
)

// AcceptOutput is the answer of Ipc.Accept.
type AcceptOutput struct {
	Status string `json:"status" keep:"always" enum:"DELIVERED EXPIRED BLOCKED_BY_GOVERNANCE" doc:"What happened to the message."`
	MsgID  int64  `json:"msg_id,omitzero" keep:"always" doc:"Number of the message here; absent: it was not taken now."`
	Known  bool   `json:"known,omitzero" keep:"always" doc:"It was taken before."`
	Reason string `json:"reason,omitzero" keep:"always" doc:"Why it was not taken."`
}

// TakenInput is the data of the kernel's own Ipc.Taken.
type TakenInput struct {
	Kernel      string `json:"kernel" keep:"always" doc:"Kernel that the message is of."`
	Instance    string `json:"instance" keep:"always" doc:"State directory of that kernel, which numbers its messages."`
	Epoch       int64  `json:"epoch" keep:"always" doc:"Epoch of that state directory."`
	MsgID       int64  `json:"msg_id" keep:"always" doc:"Number of the message there."`
	ReceiverPID int64  `json:"receiver_pid" keep:"always" doc:"Process that it is for."`
}

// TakenOutput is the answer of Ipc.Taken.
type TakenOutput struct {
	Taken bool `json:"taken" keep:"always" doc:"Whether it was taken."`
}

// SettleInput is the data of the kernel's own Ipc.Settle.
type SettleInput struct {
	MsgID       int64  `json:"msg_id" keep:"always" doc:"Number of the message."`
	ReceiverPID int64  `json:"receiver_pid" keep:"always" doc:"Process that it was for."`
	Kernel      string `json:"kernel" keep:"always" doc:"Kernel that it was for."`
	Status      string `json:"status" keep:"always" enum:"DELIVERED EXPIRED BLOCKED_BY_GOVERNANCE REFUSED DROPPED" doc:"What happened to it."`
	Reason      string `json:"reason,omitzero" keep:"always" doc:"Why it was not delivered."`
	ErrorID     string `json:"error_id,omitzero" keep:"always" doc:"Id of the error that the other kernel answered."`
}

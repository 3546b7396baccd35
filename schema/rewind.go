package schema

// Rewind is the domain of the syscalls that replay earlier states and undo entries (PROTOCOL 12).
const Rewind Domain = "rewind"

// ReplayInput is the data of Message.Replay.
type ReplayInput struct {
	UntilSeq int64   `json:"until_seq" keep:"always" min:"1" doc:"Number of the last entry of the journal that counts. Audit.Log has them."`
	Key      *string `json:"key,omitzero" keep:"always" minlen:"1" doc:"The value of this key in memory, in the caller's origin. Not together with pid."`
	PID      *int64  `json:"pid,omitzero" keep:"always" min:"1" doc:"This process: its descriptor, its token, its folded memory, its mailbox. Default, without key too: a summary, for the operator."`
}

// ReplayOutput is the answer of Message.Replay.
type ReplayOutput struct {
	Seq  int64  `json:"seq" keep:"always" doc:"The entry that the state is as of."`
	Tick int64  `json:"tick" keep:"always" doc:"The kernel's tick then."`
	Time int64  `json:"time" keep:"always" doc:"When the entry was made: Unix epoch, milliseconds."`
	Head string `json:"head" keep:"always" doc:"SHA-256 of the entry's line, hexadecimal."`
	Key  string `json:"key,omitzero" keep:"always" doc:"The key, with a leading slash, if one was asked for."`

	Value   Value         `json:"value,omitzero" keep:"always" doc:"Its value then, byte for byte as it was written."`
	Process *Descriptor   `json:"process,omitzero" keep:"always" doc:"The process then, if one was asked for."`
	Token   *Token        `json:"token,omitzero" keep:"always" doc:"Its token then; absent: it had none, or the caller may not read it."`
	Memory  *FoldedMemory `json:"memory,omitzero" keep:"always" doc:"Its agent's folded memory then; absent: it had none, or the caller may not read it."`
	Mailbox *int64        `json:"mailbox,omitzero" keep:"always" doc:"How many messages its mailbox held; absent: it had no mailbox."`
	Summary *ReplayedAll  `json:"summary,omitzero" keep:"always" doc:"The summary, if neither a key nor a process was asked for."`
}

// ReplayedAll is the summary of a state.
type ReplayedAll struct {
	Processes map[string]int64 `json:"processes" keep:"always" doc:"Processes by their state."`
	Keys      int64            `json:"keys" keep:"always" doc:"Keys in memory, over all origins."`
	Tokens    int64            `json:"tokens" keep:"always" doc:"Processes with a token."`
	Messages  int64            `json:"messages" keep:"always" doc:"Messages in mailboxes."`
}

// AppendJSON appends the answer with the values as they were written.
func (o ReplayOutput) AppendJSON(dst []byte) []byte {
	value, memory := o.Value, o.Memory
	o.Value, o.Memory = nil, nil
	dst = appendValue(dst, plainReplay(o))
	if value != nil {
		dst = append(append(append(dst[:len(dst)-1], `,"value":`...), value...), '}')
	}
	if memory != nil {
		dst = append(memory.AppendJSON(append(dst[:len(dst)-1], `,"memory":`...)), '}')
	}
	return dst
}

// plainReplay is ReplayOutput without its AppendJSON.
type plainReplay ReplayOutput

// UndoInput is the data of Message.Undo.
type UndoInput struct {
	Seq    int64 `json:"seq" keep:"always" min:"1" doc:"Number of the entry to undo."`
	DryRun *bool `json:"dry_run,omitzero" keep:"always" doc:"true: only say what would be done."`
}

// UndoOutput is the answer of Message.Undo.
type UndoOutput struct {
	Seq    int64  `json:"seq" keep:"always" doc:"The entry that was undone. Of an undo it is the entry of the command that it made."`
	Type   string `json:"type" keep:"always" doc:"Its type."`
	PID    int64  `json:"pid" keep:"always" doc:"The process that it was made as."`
	DryRun bool   `json:"dry_run,omitzero" keep:"always" doc:"Nothing was done: this is what would be."`
	By     int64  `json:"by,omitzero" keep:"always" doc:"The entry of the command that undid it: to undo that is to do it again. Absent: nothing was done."`

	Origin string  `json:"origin,omitzero" keep:"always" doc:"Of a change of memory: the origin of the key."`
	Key    string  `json:"key,omitzero" keep:"always" doc:"Of a change of memory: the key, with a leading slash."`
	Value  Value   `json:"value,omitzero" keep:"always" doc:"The restored value of the key; absent, without removed: the value is too long to show."`
	Gone   bool    `json:"removed,omitzero" keep:"always" doc:"Whether the key, or the token, was removed."`
	Holder int64   `json:"holder,omitzero" keep:"always" doc:"Of a grant: the process whose token it is."`
	Token  *Token  `json:"token,omitzero" keep:"always" doc:"The restored token."`
	MsgID  int64   `json:"msg_id,omitzero" keep:"always" doc:"Of mail: the number of the message."`
	Taken  []int64 `json:"taken,omitzero" keep:"always" doc:"Processes out of whose mailboxes the message was taken, ascending."`
	Read   []int64 `json:"read,omitzero" keep:"always" doc:"Processes that got it and do not have it unread any more: it was not taken from these."`
	Put    []int64 `json:"put,omitzero" keep:"always" doc:"Processes into whose mailboxes it was put again, ascending."`
	Tool   string  `json:"tool,omitzero" keep:"always" doc:"Of a tool: the user-space syscall that undoes it."`
	Answer Value   `json:"answer,omitzero" keep:"always" doc:"Its answer."`
}

// Undoes has the members that all commands that undo an entry share.
type Undoes struct {
	Seq int64  `json:"undoes" keep:"always" min:"1" doc:"The entry that is undone."`
	By  string `json:"by" keep:"always" doc:"Id of the Message.Undo that this is done for."`
	// Since is checked when the command is decided, not by a replay.
	Since *int64 `json:"since,omitzero" keep:"always" doc:"Number of changes when the undo was decided: a later change of the same key, token or message refuses it. Absent: not checked."`
}

// Undone returns u. It implements Undoing.
func (u *Undoes) Undone() *Undoes { return u }

// Undoing is the data of a command that undoes an entry.
type Undoing interface{ Undone() *Undoes }

// The syscalls of this file.
var (
	MessageReplay = NewQuery[ReplayInput, ReplayOutput](Syscall{
		Type: "Message.Replay", Aliases: []string{"Event.Replay"}, Domain: Rewind, Alone: true,
		Script:      "scripts/rewind.txtar",
		Description: "Returns a part of the state as it was after an entry of the journal: a value, a process, or a summary. It does not change the live state. With metadata.progress it reports its progress.",
	})

	MessageUndo = NewEffect[UndoInput, UndoOutput](Syscall{
		Type: "Message.Undo", Domain: Rewind, Grant: OperatorOnly,
		Script:      "scripts/rewind.txtar",
		Description: "Undoes an entry of the journal whose result is unchanged: a change of memory, a grant, unread mail, or a tool's effect if its manifest names an undo. The command that does it names the entry as its cause, and can itself be undone.",
	}, Syscall{
		Type:        "Message.Undone",
		Description: "Ends a Message.Undo: records what was done.",
	})
)

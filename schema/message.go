package schema

// Dialect is the envelope of a frame (PROTOCOL 3).
type Dialect uint8

const (
	// OsMessage is the canonical envelope: kind, type, data, metadata (MESSAGE 4.1).
	OsMessage Dialect = iota
	// OsEvent is the older envelope: type, name, payload, metadata (EVENT 4.1).
	OsEvent
)

// String returns the name of the dialect in the specs.
func (d Dialect) String() string {
	if d == OsEvent {
		return "OsEvent"
	}
	return "OsMessage"
}

// Kind is the kind of a message (MESSAGE 4.2).
type Kind uint8

// The five kinds. The zero Kind is not a kind.
const (
	KindCommand Kind = 1 + iota
	KindQuery
	KindEvent
	KindReply
	KindError
)

// kindNames has the words of the kinds in OsMessage and in OsEvent.
var kindNames = [...][2]string{
	{"", ""},
	KindCommand: {"command", "command"},
	KindQuery:   {"query", "query"},
	KindEvent:   {"event", "event"},
	KindReply:   {"reply", "response"},
	KindError:   {"error", "error"},
}

// String returns the OsMessage word for k.
func (k Kind) String() string { return k.word(OsMessage) }

func (k Kind) word(d Dialect) string {
	if int(k) >= len(kindNames) {
		return ""
	}
	return kindNames[k][d]
}

func parseKind(word []byte, d Dialect) Kind {
	for k := KindCommand; k <= KindError; k++ {
		if string(word) == kindNames[k][d] {
			return k
		}
	}
	return 0
}

// Message is a frame of either dialect.
type Message struct {
	Dialect Dialect
	Kind    Kind
	Type    string // Domain.Action (MESSAGE 4.4); `name` in OsEvent
	Data    []byte // one JSON value, as written; `payload` in OsEvent
	Meta    Metadata
	Sent    string // the type that was sent, if Type is the syscall of a Syscall.Call; else ""

	row *Syscall // of Type, set by Decode; nil if there is none, or Decode was not used
}

// sent returns the type that an answer repeats.
func (m *Message) sent() string {
	if m.Sent != "" {
		return m.Sent
	}
	return m.Type
}

// Metadata is a message's tracing data (MESSAGE 4.1.2). Empty strings are absent members.
type Metadata struct {
	Present        bool // the frame had a metadata object
	ID             string
	Timestamp      int64 // Unix epoch, milliseconds
	Correlation    string
	Causation      string
	IdempotencyKey string // commands only (MESSAGE 10.3)
	Origin         string // origin of the stored data that the call accesses; only the operator may set it
	Errand         string // number of an Errand at the calling kernel; ignored unless that kernel's process sends it
	Progress       bool   // the sender requests Syscall.Progressed events for the call
	Error          string // of an error: its fault.ID
	Refs           string // of a kernel's reply: its references, see Type.Refer
	Kernel         string // of a kernel's answer to a recorded call: the Proof
}

// names has the member names that differ between the dialects.
type names struct{ kind, typ, data string }

func (d Dialect) names() names {
	if d == OsEvent {
		return names{kind: "type", typ: "name", data: "payload"}
	}
	return names{kind: "kind", typ: "type", data: "data"}
}

package schema

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// MaxDepth is the deepest nesting of arrays and objects in a frame, including its envelope (PROTOCOL 2).
const MaxDepth = jsontype.MaxDepth

// Decode decodes one frame, without its line ending. The error is InvalidJSON if the frame is not strict JSON, and SchemaViolation if
// it is not an envelope of its dialect. fallback is the dialect of a frame that shows none. With an error, the Message has the dialect,
// type, id and correlation if they could be read.
func Decode(line []byte, fallback Dialect) (m Message, invalid *fault.Fault) {
	m.Dialect = fallback
	var frame jsontype.Object
	if frame.Scan(line) {
		var e envelope
		for k := range frame.Len() {
			e.take(frame.Member(line, k))
		}
		return m, m.decodeEnvelope(&e)
	}
	if jsontype.TooDeep(line, MaxDepth) {
		return m, fault.WireInvalidJSON.New("Invalid JSON: nested deeper than %d levels", MaxDepth)
	}
	if !jsontext.Value(line).IsValid() {
		return m, fault.WireInvalidJSON.New("Invalid JSON: %s", syntaxFault(line))
	}
	if i := jsontype.SkipSpace(line, 0); line[i] != '{' {
		return m, violation("", "the message must be a JSON object")
	}
	var e envelope
	jsontype.Members(line, func(name, value []byte) bool {
		e.take(name, value)
		return true
	})
	return m, m.decodeEnvelope(&e)
}

// DecodeRequest is Decode for a client's frame, whose answer is a line of at most limit bytes. It also refuses a timestamp
// above 2^53-1 (PROTOCOL 5), which a journal may contain, and members that the answer cannot repeat, which it removes (Shorten).
func DecodeRequest(line []byte, fallback Dialect, limit int) (Message, *fault.Fault) {
	m, invalid := Decode(line, fallback)
	if invalid == nil && m.Meta.Timestamp > maxTimestamp {
		invalid = timestampFault()
	}
	if long := m.Shorten(limit); long != nil {
		invalid = long
	}
	return m, invalid
}

// MaxKeptDepth is the deepest nesting of a command's answer, and of a value that is part of a later answer, such as the payload of a
// message, so that these answers, and a page of Audit.Log with them, stay within MaxDepth.
const MaxKeptDepth = MaxDepth - 8

// ValidWithin is jsontype.ValidWithin.
func ValidWithin(text []byte, depth int) bool { return jsontype.ValidWithin(text, depth) }

// TooDeep is jsontype.TooDeep.
func TooDeep(text []byte, limit int) bool { return jsontype.TooDeep(text, limit) }

// Valid is jsontype.Valid.
func Valid(text []byte) bool { return jsontype.Valid(text) }

// envelope has the raw values of the envelope's members; nil: absent.
type envelope struct{ kind, typ, name, data, payload, metadata []byte }

func (e *envelope) take(name, value []byte) {
	switch string(name) {
	case "kind":
		e.kind = value
	case "type":
		e.typ = value
	case "name":
		e.name = value
	case "data":
		e.data = value
	case "payload":
		e.payload = value
	case "metadata":
		e.metadata = value
	}
}

func (m *Message) decodeEnvelope(e *envelope) *fault.Fault {
	kind, typ, data := e.kind, e.typ, e.data
	switch {
	case e.kind != nil:
		m.Dialect = OsMessage
	case e.name != nil:
		m.Dialect = OsEvent
	}
	if m.Dialect == OsEvent {
		kind, typ, data = e.typ, e.name, e.payload
	}

	// The members that an answer repeats are decoded first, so that an error answer can have them.
	m.Type, m.row = readType(typ)
	metaFault := m.Meta.decode(e.metadata, m.Dialect)

	n := m.Dialect.names()
	if err := m.decodeKind(kind, n.kind); err != nil {
		return err
	}
	if m.Type == "" {
		return typeFault(typ, n.typ)
	}
	if data == nil {
		return violation(n.data, "missing required field: %s (it may be null)", n.data)
	}
	m.Data = data
	return metaFault
}

func (m *Message) decodeKind(raw []byte, member string) *fault.Fault {
	if raw == nil {
		return violation(member, "missing required field: %s", member)
	}
	if raw[0] == '"' {
		m.Kind = parseKind(jsontype.Unquote(raw), m.Dialect)
	}
	if m.Kind == 0 {
		return violation(member, "%s must be one of command, query, event, %s, error", member, KindReply.word(m.Dialect))
	}
	return nil
}

// readType returns the type, "" if it is invalid, and its row. It does not allocate for a type of the syscall table.
func readType(raw []byte) (string, *Syscall) {
	if raw == nil || raw[0] != '"' {
		return "", nil
	}
	text := jsontype.Unquote(raw)
	if row, ok := table().byType[string(text)]; ok && row.Type == string(text) {
		return row.Type, row
	}
	if typ := string(text); ValidType(typ) {
		return typ, nil
	}
	return "", nil
}

func typeFault(raw []byte, member string) *fault.Fault {
	if raw == nil {
		return violation(member, "missing required field: %s", member)
	}
	return violation(member, "%s must be a string of the form Domain.Action, such as Memory.Set", member)
}

// syntaxFault returns the first syntax error of a line that is not strict JSON, and its position.
func syntaxFault(line []byte) string {
	if jsontype.SkipSpace(line, 0) == len(line) {
		return "empty line"
	}
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if _, err := dec.ReadValue(); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return "it ends in the middle of a value"
		}
		return fault.Clip(withoutValue(strings.TrimPrefix(err.Error(), "jsontext: ")))
	}
	return "trailing data after the first value"
}

// withoutValue returns an error text without the quoted value, which may be a secret.
func withoutValue(text string) string {
	before, rest, _ := strings.Cut(text, " `")
	if end := strings.LastIndexByte(rest, '`'); end >= 0 {
		return before + rest[end+1:]
	}
	return text
}

// violation returns a SchemaViolation at the named member (PROTOCOL 3: the message begins "Schema validation failed:").
func violation(field, format string, args ...any) *fault.Fault {
	return fault.WireSchema.New("Schema validation failed: "+format, args...).At(field)
}

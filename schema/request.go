package schema

import (
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Request returns the row of a message in the syscall table, and its data, decoded as the type of the row. It returns a fault
// for a reply or an error (PROTOCOL 2), an unknown name, a command sent as a query or the reverse, and invalid
// data. It changes a Syscall.Call of a short name to the message of that syscall (ABI 4), and returns the row and the data
// of that syscall.
func (m *Message) Request() (*Syscall, any, *fault.Fault) {
	n := m.Dialect.names()
	if m.Kind != KindCommand && m.Kind != KindQuery {
		return nil, nil, fault.WireUnexpected.New("Schema validation failed: a client may send command, query or event, not %s", m.Kind.word(m.Dialect)).At(n.kind)
	}
	row, ok := m.row, true
	if row == nil || row.Type != m.Type {
		row, ok = Lookup(m.Type)
	}
	if !ok || row.Internal {
		if like := NearestType(m.Type); like != "" {
			return nil, nil, fault.WireUnknownSyscall.New("no syscall %s; did you mean %s? Otherwise register a handler and retry (Syscall.List names what there is)", fault.Clip(m.Type), like).
				With("syscall", fault.Clip(m.Type))
		}
		return nil, nil, fault.WireUnknownSyscall.New("Unsupported %s %s: register a handler and retry (Syscall.List names what there is)", n.typ, fault.Clip(m.Type)).
			With("syscall", fault.Clip(m.Type))
	}
	if m.Kind != row.Kind {
		return nil, nil, violation(n.kind, "%s is a %s, not a %s", row.Type, row.Kind.word(m.Dialect), m.Kind.word(m.Dialect))
	}
	in, err := row.decodeInput(m.Data)
	if err != nil {
		return nil, nil, err
	}
	if call, ok := in.(*CallInput); ok && !UserSpace(call.Syscall) {
		return m.behind(call)
	}
	return row, in, nil
}

// OwnRequest is Request for a command of the kernel's own. It returns a fault for any other message.
func (m *Message) OwnRequest() (*Syscall, any, *fault.Fault) {
	row, ok := Lookup(m.Type)
	if !ok || !row.Internal {
		return nil, nil, fault.KernelInternal.New("%s is no command of the kernel's own", fault.Clip(m.Type))
	}
	in, err := row.decodeInput(m.Data)
	return row, in, err
}

// decodeInput decodes the data of a request for s.
func (s *Syscall) decodeInput(data []byte) (any, *fault.Fault) {
	in, err := s.Input().Decode(data)
	if err != nil {
		return nil, err
	}
	if r, ok := in.(Referring); ok {
		if err := Missing(r); err != nil {
			return nil, err
		}
	}
	if c, ok := in.(checked); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// checked is the data of a request for which more must hold than its type says. A journal may have older requests for which
// it does not hold.
type checked interface{ Check() *fault.Fault }

// Peek returns the kind and the type of a journaled request in either dialect without decoding the rest; kind is 0 if raw
// is not a request.
func Peek(raw []byte) (kind Kind, typ string) {
	var word, name []byte
	d := OsEvent
	jsontype.Members(raw, func(member, value []byte) bool {
		switch string(member) {
		case "kind":
			d, word = OsMessage, value
		case "type":
			if d == OsMessage {
				name = value
			} else {
				word = value
			}
		case "name":
			name = value
		}
		return word == nil || name == nil
	})
	if word == nil || name == nil {
		return 0, ""
	}
	typ, _ = readType(name)
	return parseKind(jsontype.Unquote(word), d), typ
}

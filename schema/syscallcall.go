package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// CallInput is the data of Syscall.Call, which is pwosSyscall on the wire (ABI 2).
type CallInput struct {
	Target
	Syscall  string  `json:"syscall" keep:"url" minlen:"1" maxlen:"2048" doc:"Name of a syscall. Without a slash it is the kernel's, such as ping, memory or describe; with one it is a path: os/skills/search is below root, ./tools/calc is relative to the caller's adopted identity."`
	Args     []Value `json:"args,omitzero" keep:"always" doc:"Its arguments, in their order. One object in place of the optional ones gives members by their names."`
	Describe *bool   `json:"describe,omitzero" keep:"always" doc:"Whether to describe a path instead of calling it, from the file <path>.json or from the tool itself. For short names use Syscall.Describe."`
}

// Input returns the input for the tool: null for no argument, the argument if there is one, else an array of the arguments.
func (in *CallInput) Input() []byte {
	switch len(in.Args) {
	case 0:
		return []byte("null")
	case 1:
		return in.Args[0]
	}
	list := []byte{'['}
	for i, arg := range in.Args {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, arg...)
	}
	return append(list, ']')
}

// CallType is the type of Syscall.Call.
const CallType = "Syscall.Call"

// behind changes m, a Syscall.Call of a short name, to the message of that syscall, so that it is checked, decided,
// recorded and replayed like a message of that type. m.Sent has the type that the answer repeats. With an error, m is unchanged.
func (m *Message) behind(call *CallInput) (*Syscall, any, *fault.Fault) {
	if call.Describe != nil {
		return nil, nil, jsontype.Invalid("describe", "is for paths: what the kernel has is described by Syscall.Describe")
	}
	typ, data, err := ShortCall(call.Syscall, call.Args)
	if err != nil {
		return nil, nil, err
	}
	row, ok := Lookup(typ)
	if !ok || row.Internal {
		return nil, nil, fault.WireUnknownSyscall.New("no such syscall: %q stands for %s, which this kernel does not have", fault.Clip(call.Syscall), typ).With("syscall", fault.Clip(call.Syscall))
	}
	in, err := row.decodeInput(data)
	if err != nil {
		return nil, nil, err
	}
	if call.PID != nil || call.Tick != nil {
		if in, data, err = aim(row, in, data, &call.Target); err != nil {
			return nil, nil, err
		}
	}
	m.Sent, m.Kind, m.Type, m.Data = m.Type, row.Kind, row.Type, data
	return row, in, nil
}

// aim adds the PID and the tick of a Syscall.Call to the data of the called syscall.
func aim(row *Syscall, in any, data []byte, at *Target) (any, []byte, *fault.Fault) {
	own, ok := in.(Targeted)
	data = data[:len(data)-1] // without its brace
	add := func(name string, value, taken *int64) *fault.Fault {
		switch {
		case value == nil:
			return nil
		case !ok:
			return jsontype.Invalid(name, "is not accepted here: %s always acts as its caller", row.Type)
		case taken != nil:
			return jsontype.Invalid(name, "is given twice: in args and next to it")
		}
		if len(data) > 1 {
			data = append(data, ',')
		}
		data = strconv.AppendInt(append(jsontype.AppendString(data, name), ':'), *value, 10)
		return nil
	}
	var target Target
	if ok {
		target = *own.On()
	}
	if err := add("pid", at.PID, target.PID); err != nil {
		return nil, nil, err
	}
	if err := add("tick", at.Tick, target.Tick); err != nil {
		return nil, nil, err
	}
	data = append(data, '}')
	in, err := row.decodeInput(data)
	return in, data, err
}

package schema

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Outcome is the outcome of a call in the journal (PROTOCOL 7).
type Outcome struct {
	Data    []byte // of a command's reply
	Refs    []byte // the references in Data, for the metadata of the reply, see Refer; nil: none
	Err     *fault.Fault
	Let     *LetThrough // the approval that allowed the call; nil if no rule required one
	Repeats uint64      // the seq whose outcome was returned again, for a repeated idempotency key; 0: the call ran
}

// LetThrough is the approval that allowed a call for which a rule requires one.
type LetThrough struct {
	Approval, Rule, Policy string
	Exhausted              string // the kind of budget that the call exceeded; "": none
	Advisory               bool
}

// AppendOutcome appends the outcome of a call of the given kind. The outcome of a query has no data.
func AppendOutcome(dst []byte, kind Kind, o *Outcome) []byte {
	if o.Err != nil {
		dst = append(dst, `{"kind":"error","data":`...)
		dst = fault.AppendData(dst, o.Err)
		dst = fault.AppendRecord(dst, o.Err)
	} else {
		dst = append(dst, `{"kind":"reply"`...)
		if kind != KindQuery {
			dst = append(append(dst, `,"data":`...), o.Data...)
			if o.Refs != nil {
				dst = append(append(dst, `,"refs":`...), o.Refs...)
			}
		}
	}
	if let := o.Let; let != nil {
		dst = jsontype.AppendString(append(dst, `,"approved":{"approval":`...), let.Approval)
		dst = appendMember(dst, `,"rule":`, let.Rule)
		dst = appendMember(dst, `,"policy":`, let.Policy)
		if let.Exhausted != "" {
			dst = appendMember(dst, `,"exhausted":`, let.Exhausted)
		}
		if let.Advisory {
			dst = append(dst, `,"advisory":true`...)
		}
		dst = append(dst, '}')
	}
	if o.Repeats != 0 {
		dst = strconv.AppendUint(append(dst, `,"repeats":`...), o.Repeats, 10)
	}
	return append(dst, '}')
}

// DecodeOutcome decodes the output of AppendOutcome. Data and Refs alias raw.
func DecodeOutcome(raw []byte) (Outcome, *fault.Fault) {
	var o Outcome
	if !ValidWithin(raw, 2*MaxDepth) || raw[0] != '{' { // an outcome may nest deeper than a frame
		return o, fault.KernelInternal.New("outcome is no JSON object")
	}
	var kind string
	var data []byte
	var class int64
	var id fault.ID
	var field string
	var details []fault.Detail
	var causes []fault.ID
	jsontype.Members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "kind":
			kind = string(jsontype.Unquote(value))
		case "data":
			data = value
		case "refs":
			o.Refs = value
		case "class":
			class, _ = jsontype.ParseInteger(value)
		case "error":
			id = fault.ID(jsontype.Unquote(value))
		case "field":
			field = string(jsontype.Unquote(value))
		case "details":
			jsontype.Members(value, func(name, value []byte) bool {
				details = append(details, fault.Detail{Name: string(name), Value: string(jsontype.Unquote(value))})
				return true
			})
		case "causes":
			jsontype.Elements(value, func(value []byte) bool {
				causes = append(causes, fault.ID(jsontype.Unquote(value)))
				return true
			})
		case "approved":
			o.Let = new(LetThrough)
			jsontype.Members(value, func(name, value []byte) bool {
				switch string(name) {
				case "approval":
					o.Let.Approval = string(jsontype.Unquote(value))
				case "rule":
					o.Let.Rule = string(jsontype.Unquote(value))
				case "policy":
					o.Let.Policy = string(jsontype.Unquote(value))
				case "exhausted":
					o.Let.Exhausted = string(jsontype.Unquote(value))
				case "advisory":
					o.Let.Advisory = string(value) == "true"
				}
				return true
			})
		case "repeats":
			if seq, ok := jsontype.ParseInteger(value); ok && seq > 0 {
				o.Repeats = uint64(seq)
			}
		}
		return true
	})
	switch kind {
	case "reply":
		o.Data = data
		return o, nil
	case "error":
	default:
		return o, fault.KernelInternal.New("outcome is neither a reply nor an error")
	}
	o.Refs = nil
	f, err := DecodeErrorData(data)
	if err != nil {
		return o, err
	}
	o.Err, f.Field, f.Details = f, field, details
	if kind := fault.Kind(class); class > 0 && class < 256 && kind.Valid() && kind.Status() == f.Code() {
		f.Kind = kind
	}
	if id == "" {
		id = idOfOldText(f)
	}
	f.SetID(id)
	for cause := f.Cause; cause != nil && len(causes) > 0; cause, causes = cause.Cause, causes[1:] {
		cause.SetID(causes[0])
	}
	return o, nil
}

// idOfOldText returns the id of an error in a journal of an older kernel, whose errors had no ids, from the text of the error. It knows
// only the errors that a replay depends on.
func idOfOldText(f *fault.Fault) fault.ID {
	switch {
	case f.Kind != fault.Conflict:
	case strings.HasPrefix(f.Message, "idempotency key ") && strings.HasSuffix(f.Message, " was used for another message: take a new key"):
		return fault.IdempotencyOtherBody
	case strings.HasPrefix(f.Message, "the first message with idempotency key ") && strings.HasSuffix(f.Message, " is still being carried out: wait for its answer"):
		return fault.IdempotencyUnderWay
	}
	return ""
}

// DecodeErrorData decodes the data of an OsMessage error, the output of fault.AppendData.
func DecodeErrorData(raw []byte) (*fault.Fault, *fault.Fault) {
	if !Valid(raw) || raw[0] != '{' {
		return nil, fault.WireInvalidInput.New("error data is no JSON object")
	}
	e := &fault.Fault{}
	var invalid *fault.Fault
	jsontype.Members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "code":
			code, _ := jsontype.ParseInteger(value)
			e.Kind = fault.KindOf(int(code))
			if e.Kind.Status() != int(code) && code >= 400 && code <= 599 {
				e.Status = int(code)
			}
		case "message":
			if value[0] == '"' {
				e.Message = string(jsontype.Unquote(value))
			}
		case "cause":
			e.Cause, invalid = DecodeErrorData(value)
		}
		return invalid == nil
	})
	return e, invalid
}

// EffectEnd is the data of the command that ends an effect: an Outcome of the syscall table.
type EffectEnd struct {
	Intent  int64  `json:"intent" keep:"always" min:"0" doc:"Entry of the journal that the call is."`
	Type    string `json:"type" keep:"always" doc:"Syscall that was called."`
	Name    string `json:"name,omitzero" keep:"always" doc:"Name of the registered syscall that was called."`
	PID     int64  `json:"pid" keep:"always" min:"0" doc:"Process that it was called as."`
	Ran     bool   `json:"ran" keep:"always" doc:"Whether it was begun: if not, nothing has happened."`
	Digest  string `json:"digest,omitzero" keep:"always" doc:"SHA-256 of an answer that is in a blob, to which the outcome refers."`
	Outcome Value  `json:"outcome" keep:"always" doc:"Its outcome, in the form of an entry's outcome."`

	Causation string `json:"causation,omitzero" keep:"always" doc:"What the call named as its own cause."`
	Unknown   bool   `json:"unknown,omitzero" keep:"always" doc:"Whether the kernel stopped while it was in flight, so that its outcome is not known."`
}

// EndOf returns the data of a journaled message that ends an effect, nil for any other message.
func EndOf(m *Message) *EffectEnd {
	if row, ok := Lookup(m.Type); !ok || !row.ends {
		return nil
	}
	in, err := TypeOf[EffectEnd]().Decode(m.Data)
	if err != nil {
		return nil
	}
	return in.(*EffectEnd)
}

// Called returns the name of the called syscall.
func (in *EffectEnd) Called() string { return cmp.Or(in.Name, in.Type) }

// Result returns the result of the runner: the data, or the error for the caller.
func (in *EffectEnd) Result() ([]byte, *fault.Fault) {
	outcome := in.Verdict()
	return outcome.Data, outcome.Err
}

// Verdict returns the decoded outcome.
func (in *EffectEnd) Verdict() Outcome {
	outcome, err := DecodeOutcome(in.Outcome)
	if err != nil {
		return Outcome{Err: err}
	}
	return outcome
}

// Ended returns the request that ends an effect of the syscall.
func (s *Syscall) Ended(end *EffectEnd) Request {
	row, _ := Lookup(s.Outcome)
	return Request{Row: row, Input: end}
}

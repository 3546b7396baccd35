package schema

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Outcome is what the journal keeps of a call's end (PROTOCOL 7).
type Outcome struct {
	Data    []byte // of a command's reply
	Refs    []byte // what its metadata says of references in Data, see Refer; nil: nothing
	Err     *fault.Fault
	Let     *LetThrough // what let the call through where somebody was asked; nil: nobody was
	Repeats uint64      // the seq whose outcome was given again, for an idempotency key; 0: the call ran
}

// LetThrough is the approval by which a rule that asks has let a call through.
type LetThrough struct {
	Approval, Rule, Policy string
	Exhausted              string // the kind of budget of which it needed more than was left; "": none
	Advisory               bool
}

// AppendOutcome appends the outcome of a call of the given kind: a query's reply is kept without its data.
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

// DecodeOutcome reads what AppendOutcome wrote. Data and Refs alias raw.
func DecodeOutcome(raw []byte) (Outcome, *fault.Fault) {
	var o Outcome
	if !ValidWithin(raw, 2*MaxDepth) || raw[0] != '{' { // what was written has to be read, be it deeper than any frame
		return o, fault.KernelInternal.New("outcome is no JSON object")
	}
	var failed bool
	var data []byte
	var class int64
	var id fault.ID
	var field string
	var details []fault.Detail
	var causes []fault.ID
	jsontype.Members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "kind":
			failed = string(value) == `"error"`
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
	if !failed {
		o.Data = data
		return o, nil
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

// idOfOldText returns the id of an error that was journaled before errors had ids, where a start depends on it. The texts are
// those of the kernels that wrote such journals.
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

// DecodeErrorData reads the data of an OsMessage error, such as fault.AppendData writes.
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

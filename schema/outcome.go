package schema

import "strconv"

// Outcome is what the journal keeps of a call's end (PROTOCOL 7).
type Outcome struct {
	Data    []byte // of a command's reply
	Err     *Error
	Repeats uint64 // the seq whose outcome was given again, for an idempotency key; 0: the call ran
}

// AppendOutcome appends the outcome of a call of the given kind: a query's reply is kept without its data.
func AppendOutcome(dst []byte, kind Kind, o *Outcome) []byte {
	if o.Err != nil {
		dst = append(dst, `{"kind":"error","data":`...)
		dst = AppendErrorData(dst, o.Err)
		dst = appendClass(dst, o.Err)
	} else {
		dst = append(dst, `{"kind":"reply"`...)
		if kind != Query {
			dst = append(append(dst, `,"data":`...), o.Data...)
		}
	}
	if o.Repeats != 0 {
		dst = strconv.AppendUint(append(dst, `,"repeats":`...), o.Repeats, 10)
	}
	return append(dst, '}')
}

// appendClass keeps what the data of an OsMessage error does not tell, so that the same outcome can be given again in the
// other dialect: the class where it is not the first of its code, the member at fault.
func appendClass(dst []byte, e *Error) []byte {
	if ClassOf(e.Code()) != e.Class {
		dst = strconv.AppendUint(append(dst, `,"class":`...), uint64(e.Class), 10)
	}
	if e.Field != "" {
		dst = appendString(append(dst, `,"field":`...), e.Field)
	}
	return dst
}

// DecodeOutcome reads what AppendOutcome wrote. Data aliases raw.
func DecodeOutcome(raw []byte) (Outcome, *Error) {
	var o Outcome
	if !ValidWithin(raw, 2*MaxDepth) || raw[0] != '{' { // what was written has to be read, be it deeper than any frame
		return o, Errorf(Internal, "outcome is no JSON object")
	}
	var failed bool
	var data []byte
	var class int64
	var field string
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "kind":
			failed = string(value) == `"error"`
		case "data":
			data = value
		case "class":
			class, _ = parseInteger(value)
		case "field":
			field = string(unquote(value))
		case "repeats":
			if seq, ok := parseInteger(value); ok && seq > 0 {
				o.Repeats = uint64(seq)
			}
		}
		return true
	})
	if !failed {
		o.Data = data
		return o, nil
	}
	var fault *Error
	if o.Err, fault = DecodeErrorData(data); fault != nil {
		return o, fault
	}
	o.Err.Field = field
	if class > 0 && class < int64(len(codes)) && codes[class].status == o.Err.Code() {
		o.Err.Class = Class(class)
	}
	return o, nil
}

// DecodeErrorData reads the data of an OsMessage error, such as AppendErrorData writes.
func DecodeErrorData(raw []byte) (*Error, *Error) {
	if !Valid(raw) || raw[0] != '{' {
		return nil, Errorf(InvalidInput, "error data is no JSON object")
	}
	e := &Error{}
	var fault *Error
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "code":
			code, _ := parseInteger(value)
			e.Class = ClassOf(int(code))
		case "message":
			if value[0] == '"' {
				e.Message = string(unquote(value))
			}
		case "cause":
			e.Cause, fault = DecodeErrorData(value)
		}
		return fault == nil
	})
	return e, fault
}

// ClassOf is the first class with the given status, Internal where there is none.
func ClassOf(status int) Class {
	for class, c := range codes {
		if c.status == status {
			return Class(class)
		}
	}
	return Internal
}

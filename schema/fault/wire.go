package fault

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendData appends f as the data of an OsMessage error: code, message and cause, nothing else (MESSAGE 4.2.6).
func AppendData(dst []byte, f *Fault) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(f.Code()), 10)
	dst = quote(append(dst, `,"message":`...), f.Text())
	if f.Cause != nil {
		dst = AppendData(append(dst, `,"cause":`...), f.Cause)
	}
	return append(dst, '}')
}

// AppendEventData appends f as the payload of an OsEvent error (EVENT 4.2.5): details has the member at fault, what the fault
// names, and the cause.
func AppendEventData(dst []byte, f *Fault) []byte {
	dst = quote(append(dst, `{"message":`...), f.Text())
	dst = append(append(append(dst, `,"code":"`...), f.EventCode()...), '"')
	const open = `,"details":{`
	start := len(dst)
	next := func(name string) {
		if len(dst) == start {
			dst = append(dst, open...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(quote(dst, name), ':')
	}
	if f.Field != "" || f.Kind == SchemaViolation { // EVENT 4.6.2: a violation has details; "" is the whole message
		next("field")
		dst = quote(dst, f.Field)
	}
	for _, d := range f.Details {
		next(d.Name)
		dst = quote(dst, d.Value)
	}
	if f.Cause != nil {
		next("cause")
		dst = AppendEventData(dst, f.Cause)
	}
	if len(dst) > start {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// AppendRecord appends the members that the journal records of f in addition to its data: its id, the ids of its causes, and the
// details of OsEvent. With them, the error can be sent again in either dialect.
func AppendRecord(dst []byte, f *Fault) []byte {
	if f.ID != "" {
		dst = quote(append(dst, `,"error":`...), string(f.ID))
	}
	if KindOf(f.Code()) != f.Kind && f.ID.Kind() != f.Kind {
		dst = strconv.AppendUint(append(dst, `,"class":`...), uint64(f.Kind), 10)
	}
	if f.Field != "" {
		dst = quote(append(dst, `,"field":`...), f.Field)
	}
	for i, d := range f.Details {
		if i == 0 {
			dst = append(dst, `,"details":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = quote(append(quote(dst, d.Name), ':'), d.Value)
	}
	if len(f.Details) > 0 {
		dst = append(dst, '}')
	}
	for cause := f.Cause; cause != nil; cause = cause.Cause {
		if cause == f.Cause {
			dst = append(dst, `,"causes":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = quote(dst, string(cause.ID))
	}
	if f.Cause != nil {
		dst = append(dst, ']')
	}
	return dst
}

// quote appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func quote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error says that bad UTF-8 was replaced
	return dst
}

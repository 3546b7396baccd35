package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// AppendMessage appends m as one line in its own dialect, its '\n' included. Data must be one valid JSON value on one
// line; no Data is written as null, absent metadata is left out.
func AppendMessage(dst []byte, m *Message) []byte {
	dst = appendData(appendHead(dst, m.Dialect, m.Kind, m.Type), m.Data)
	if m.Meta.Present {
		dst = append(dst, `,"metadata":{"id":`...)
		dst = jsontype.AppendString(dst, m.Meta.ID)
		dst = append(dst, `,"timestamp":`...)
		dst = strconv.AppendInt(dst, m.Meta.Timestamp, 10)
		dst = appendMember(dst, `,"correlation":`, m.Meta.Correlation)
		dst = appendMember(dst, `,"causation":`, m.Meta.Causation)
		dst = appendMember(dst, `,"idempotencyKey":`, m.Meta.IdempotencyKey)
		dst = appendMember(dst, `,"origin":`, m.Meta.Origin)
		if m.Meta.Progress {
			dst = append(dst, `,"progress":true`...)
		}
		dst = appendMember(dst, `,"via":`, m.Sent) // for who reads the journal; Decode does not look at it
		dst = append(dst, '}')
	}
	return append(dst, "}\n"...)
}

// AppendReply appends the successful answer to req with the given data, its '\n' included (MESSAGE 4.2.4). Data is as in
// AppendMessage.
func AppendReply(dst []byte, req *Message, data []byte, st *Stamp) []byte {
	dst = appendData(appendHead(dst, req.Dialect, KindReply, req.sent()), data)
	return appendTail(dst, req, st, nil)
}

// AppendEvent appends an event of the kernel's, its '\n' included (MESSAGE 4.2.3). Of meta its causation and its correlation
// are written. Data is as in AppendMessage.
func AppendEvent(dst []byte, d Dialect, typ string, data []byte, meta Metadata, st *Stamp) []byte {
	dst = appendData(appendHead(dst, d, KindEvent, typ), data)
	return appendTail(dst, &Message{Meta: Metadata{ID: meta.Causation, Correlation: meta.Correlation}}, st, nil)
}

// AppendError appends the error that answers req, its '\n' included (MESSAGE 4.2.5, EVENT 4.2.5).
func AppendError(dst []byte, req *Message, e *fault.Fault, st *Stamp) []byte {
	typ := req.sent()
	if typ == "" {
		typ = "Validation.Failed"
	}
	dst = appendHead(dst, req.Dialect, KindError, typ)
	if req.Dialect == OsEvent {
		dst = fault.AppendEventData(dst, e)
	} else {
		dst = fault.AppendData(dst, e)
	}
	return appendTail(dst, req, st, e)
}

func appendHead(dst []byte, d Dialect, k Kind, typ string) []byte {
	if d == OsEvent {
		dst = append(dst, `{"type":"`...)
		dst = append(dst, k.word(d)...)
		dst = append(dst, `","name":`...)
		dst = jsontype.AppendString(dst, typ)
		return append(dst, `,"payload":`...)
	}
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, k.word(d)...)
	dst = append(dst, `","type":`...)
	dst = jsontype.AppendString(dst, typ) // a client may try to send any type
	return append(dst, `,"data":`...)
}

// appendData appends a message's data; what has none says null.
func appendData(dst, data []byte) []byte {
	if len(data) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, data...)
}

// appendTail ends an answer: its own id and time, what it answers, the id of its error where it is one, the approval that would
// be needed, and the audit record that proves it.
func appendTail(dst []byte, req *Message, st *Stamp, failure *fault.Fault) []byte {
	dst = append(dst, `,"metadata":{"id":"`...)
	dst = append(dst, st.ID[:]...)
	dst = append(dst, `","timestamp":`...)
	dst = strconv.AppendInt(dst, st.Time, 10)
	dst = appendMember(dst, `,"correlation":`, req.Meta.Correlation)
	dst = appendMember(dst, `,"causation":`, req.Meta.ID)
	if failure != nil {
		dst = appendMember(dst, `,"error":`, string(failure.ID))
		if failure.Kind == fault.Pending {
			dst = appendMember(dst, `,"approval":`, failure.Detail("approval"))
		}
	}
	if p := st.Proof; p.Seq != 0 {
		dst = append(dst, `,"kernel":{"seq":`...)
		dst = strconv.AppendUint(dst, p.Seq, 10)
		dst = append(dst, `,"pid":`...)
		dst = strconv.AppendInt(dst, p.PID, 10)
		dst = append(dst, `,"tick":`...)
		dst = strconv.AppendInt(dst, p.Tick, 10)
		dst = append(dst, `,"latency_us":`...)
		dst = strconv.AppendInt(dst, p.LatencyUS, 10)
		dst = append(dst, '}')
	}
	if st.Refs != nil {
		dst = append(append(dst, `,"refs":`...), st.Refs...)
	}
	return append(dst, "}}\n"...)
}

func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return jsontype.AppendString(append(dst, name...), value)
}

// AppendString is jsontype.AppendString.
func AppendString(dst []byte, s string) []byte { return jsontype.AppendString(dst, s) }

package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// AppendMessage appends m as one line in its own dialect, with its line break. Data must be one valid JSON value on one line; nil
// becomes null. Absent metadata is omitted.
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
		dst = appendMember(dst, `,"errand":`, m.Meta.Errand)
		if m.Meta.Progress {
			dst = append(dst, `,"progress":true`...)
		}
		dst = appendMember(dst, `,"via":`, m.Sent) // for readers of the journal; Decode ignores it
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

// AppendEvent appends an event of the kernel, with its line break (MESSAGE 4.2.3). It writes causation and correlation of meta. Data is
// as in AppendMessage.
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
	dst = jsontype.AppendString(dst, typ) // a client may send any type
	return append(dst, `,"data":`...)
}

// appendData appends a message's data; nil is null.
func appendData(dst, data []byte) []byte {
	if len(data) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, data...)
}

// appendTail appends the end of an answer: its own id and time, the ids of its request, the id of an error, the approval it needs,
// and the proof of its audit record.
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
		if p.DiskOnly {
			dst = append(dst, `,"acknowledged":"disk"`...)
		}
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

// answerRoom is the number of bytes of a line that are reserved for the parts of an answer that do not repeat the request: an error
// and the answer's own metadata, or a reference.
const answerRoom = 4 << 10

// Shorten removes members that an answer on a line of at most limit bytes cannot repeat (MESSAGE 4.3.2): the longest of type,
// id and correlation first. It returns the fault of the first removed member, nil if all fit.
func (m *Message) Shorten(limit int) (first *fault.Fault) {
	room := max(limit, MaxLine) - answerRoom // no configuration allows shorter lines
	// An escaped byte takes at most six.
	if 6*(len(m.Type)+len(m.Meta.ID)+len(m.Meta.Correlation)) <= room {
		return nil
	}
	texts := [...]*string{&m.Type, &m.Meta.ID, &m.Meta.Correlation}
	fields := [...]string{m.Dialect.names().typ, "metadata.id", "metadata.correlation"}
	var lengths [len(texts)]int
	for i, text := range texts {
		lengths[i] = writtenLen(*text)
	}
	for lengths[0]+lengths[1]+lengths[2] > room {
		longest := 0
		for i, n := range lengths {
			if n > lengths[longest] {
				longest = i
			}
		}
		if first == nil {
			first = violation(fields[longest], "%s is too long: an answer repeats %s, %s and %s, which may take %d bytes together",
				fields[longest], fields[0], fields[1], fields[2], room)
		}
		*texts[longest], lengths[longest] = "", 0
	}
	return first
}

// Brief returns e shortened to fit an answer: without long quotes, and without its cause.
func Brief(e *fault.Fault) *fault.Fault {
	return &fault.Fault{Kind: e.Kind, ID: e.ID, Message: fault.Clip(e.Text()), Field: fault.Clip(e.Field)}
}

// writtenLen returns the length of s as a JSON string, without quotes.
func writtenLen(s string) int { return len(jsontype.AppendString(nil, s)) - len(`""`) }

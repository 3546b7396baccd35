package schema_test

import (
	"bytes"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// stampOf returns a stamp with a fixed id and time.
func stampOf(proof schema.Proof) *schema.Stamp {
	st := &schema.Stamp{Time: 1735000001000, Proof: proof}
	copy(st.ID[:], "01961d2c-0000-7000-8000-000000000001")
	return st
}

const stamped = `"metadata":{"id":"01961d2c-0000-7000-8000-000000000001","timestamp":1735000001000`

// TestEncodeGolden checks the bytes of lines (MESSAGE 4.1, MESSAGE 4.2.4 #1-#2, MESSAGE 4.2.5 #1-#2, MESSAGE 4.3.1, MESSAGE 4.5.1 #1-#2,
// MESSAGE 4.5.2 #1, MESSAGE 4.7.2, and the same of EVENT). Words with @ are those of `in`.
func TestEncodeGolden(t *testing.T) {
	t.Parallel()
	full := schema.Metadata{Present: true, ID: "m-1", Timestamp: 1735000000000, Correlation: "flow-1", Causation: "m-0", IdempotencyKey: "k-1"}
	proof := schema.Proof{Seq: 12, PID: 7, Tick: 3, LatencyUS: 14}
	failure := &fault.Fault{Kind: fault.Conflict, Message: "already there"}
	request := func(d schema.Dialect, m schema.Metadata) *schema.Message {
		return &schema.Message{Dialect: d, Kind: schema.KindCommand, Type: "Memory.Set", Data: []byte(`{"key":1}`), Meta: m}
	}
	for _, tc := range []struct {
		name   string
		append func(dst []byte, d schema.Dialect) []byte
		want   string
	}{
		{"message", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendMessage(dst, request(d, full))
		}, `{"@kind":"command","@type":"Memory.Set","@data":{"key":1},"metadata":{"id":"m-1","timestamp":1735000000000,"correlation":"flow-1","causation":"m-0","idempotencyKey":"k-1"}}`},
		{"message_least", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendMessage(dst, &schema.Message{Dialect: d, Kind: schema.KindReply, Type: "Syscall.Authenticate"})
		}, `{"@kind":"@reply","@type":"Syscall.Authenticate","@data":null}`},
		{"message_of_any_type", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendMessage(dst, &schema.Message{Dialect: d, Kind: schema.KindEvent, Type: "a\"b\n", Data: []byte{}})
		}, `{"@kind":"event","@type":"a\"b\n","@data":null}`},
		{"reply", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendReply(dst, request(d, full), []byte(`{"success":true}`), stampOf(schema.Proof{}))
		}, `{"@kind":"@reply","@type":"Memory.Set","@data":{"success":true},` + stamped + `,"correlation":"flow-1","causation":"m-1"}}`},
		{"reply_with_proof", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendReply(dst, request(d, full), []byte(`1`), stampOf(proof))
		}, `{"@kind":"@reply","@type":"Memory.Set","@data":1,` + stamped + `,"correlation":"flow-1","causation":"m-1","kernel":{"seq":12,"pid":7,"tick":3,"latency_us":14}}}`},
		{"reply_without_correlation", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendReply(dst, request(d, schema.Metadata{Present: true, ID: `m"2`}), []byte(`1`), stampOf(schema.Proof{PID: 7}))
		}, `{"@kind":"@reply","@type":"Memory.Set","@data":1,` + stamped + `,"causation":"m\"2"}}`},
		{"reply_to_no_metadata", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendReply(dst, request(d, schema.Metadata{}), nil, stampOf(schema.Proof{}))
		}, `{"@kind":"@reply","@type":"Memory.Set","@data":null,` + stamped + `}}`},
		{"event", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendEvent(dst, d, "Process.Exited", []byte(`{"pid":7}`), full, stampOf(schema.Proof{}))
		}, `{"@kind":"event","@type":"Process.Exited","@data":{"pid":7},` + stamped + `,"correlation":"flow-1","causation":"m-0"}}`},
		{"event_with_proof", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendEvent(dst, d, "Ipc.MessageDelivered", nil, schema.Metadata{ID: "none of it"}, stampOf(proof))
		}, `{"@kind":"event","@type":"Ipc.MessageDelivered","@data":null,` + stamped + `,"kernel":{"seq":12,"pid":7,"tick":3,"latency_us":14}}}`},
		{"error_with_proof", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendError(dst, request(d, full), failure, stampOf(proof))
		}, `{"@kind":"error","@type":"Memory.Set","@data":@failure,` + stamped + `,"correlation":"flow-1","causation":"m-1","kernel":{"seq":12,"pid":7,"tick":3,"latency_us":14}}}`},
		{"error_about_what_could_not_be_read", func(dst []byte, d schema.Dialect) []byte {
			return schema.AppendError(dst, &schema.Message{Dialect: d}, failure, stampOf(schema.Proof{}))
		}, `{"@kind":"error","@type":"Validation.Failed","@data":@failure,` + stamped + `}}`},
	} {
		eachDialect(t, tc.name, func(t *testing.T, d schema.Dialect) {
			shown := map[schema.Dialect]string{
				schema.OsMessage: `{"code":409,"message":"already there"}`,
				schema.OsEvent:   `{"message":"already there","code":"CONFLICT"}`,
			}[d]
			want := in(d, string(bytes.ReplaceAll([]byte(tc.want), []byte("@failure"), []byte(shown)))) + "\n"
			if got := string(tc.append(nil, d)); got != want {
				t.Errorf("got  %swant %s", got, want)
			}
			if got := string(tc.append([]byte("before "), d)); got != "before "+want {
				t.Errorf("appended: %s", got)
			}
		})
	}
}

// TestAppendReplyIsLean checks that an answer does not change its request (MESSAGE 4.1.2 #2, EVENT 4.2.3 #2), and does not allocate
// if the buffer is large enough.
func TestAppendReplyIsLean(t *testing.T) {
	m := decode(t, ping(schema.OsMessage, `{"payload":1}`), schema.OsMessage)
	before, st, buf := m, stampOf(schema.Proof{Seq: 1}), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = schema.AppendReply(buf[:0], &m, m.Data, st) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if m.Meta != before.Meta || m.Type != before.Type || string(m.Data) != `{"payload":1}` || m.Kind != schema.KindQuery {
		t.Errorf("the request became %+v", m)
	}
}

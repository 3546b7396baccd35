package schema_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// depth returns the nesting depth of a valid JSON text.
func depth(text []byte) int {
	dec, most := jsontext.NewDecoder(bytes.NewReader(text)), 0
	for {
		if _, err := dec.ReadToken(); err != nil {
			return most
		}
		most = max(most, dec.StackDepth())
	}
}

// FuzzDecode checks that any line decodes to a message or to one error that can be sent (MESSAGE 9.2 #1 and #5, EVENT 9.2 #1), that a
// line is valid JSON if the library accepts it and its depth is within the limit, and that an encoded message decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, c := range readCorpus(f) {
		f.Add([]byte(ping(schema.OsMessage, c.text)), false)
		f.Add([]byte(c.text), true)
	}
	for _, d := range dialects {
		for _, err := range append(envelopeFaults(), metadataFaults()...) {
			f.Add([]byte(in(d, err.frame)), d == schema.OsEvent)
		}
	}
	f.Add([]byte(ping(schema.OsEvent, strings.Repeat("[", 63)+strings.Repeat("]", 63))), false)
	f.Fuzz(func(t *testing.T, line []byte, event bool) {
		fallback := schema.OsMessage
		if event {
			fallback = schema.OsEvent
		}
		m, err := schema.Decode(line, fallback)
		strict := jsontext.Value(line).IsValid() && depth(line) <= schema.MaxDepth
		if strict != schema.Valid(line) || strict == (err != nil && err.Kind == fault.InvalidJSON) {
			t.Fatalf("strict JSON: %t, Valid: %t, Decode: %v", strict, schema.Valid(line), err)
		}
		checkLongWay(t, line, fallback, &m, err)
		if err != nil {
			checkFault(t, &m, err)
			return
		}
		if !schema.ValidType(m.Type) || m.Kind.String() == "" || !schema.Valid(m.Data) || m.Meta.Present && m.Meta.ID == "" || m.Meta.Timestamp < 0 {
			t.Fatalf("decoded %+v", m)
		}
		if _, _, err := m.Request(); err != nil {
			checkFault(t, &m, err)
		}
		if bytes.IndexByte(m.Data, '\n') >= 0 {
			return // a line reader returns no such line
		}
		again := schema.AppendMessage(nil, &m)
		checkLine(t, again)
		m2, err := schema.Decode(again, fallback)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(m, m2, public); diff != "" {
			t.Fatal(diff)
		}
		if third := schema.AppendMessage(nil, &m2); !bytes.Equal(again, third) {
			t.Fatalf("%s became %s", again, third)
		}
	})
}

// checkLongWay checks that the fast path and the library have the same result. An unknown member with an escape in its name forces
// the use of the library.
func checkLongWay(t *testing.T, line []byte, fallback schema.Dialect, m *schema.Message, err *fault.Fault) {
	t.Helper()
	members, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{"))
	if !ok || err != nil && err.Kind == fault.InvalidJSON || bytes.HasPrefix(bytes.TrimSpace(members), []byte("}")) {
		return
	}
	long := append([]byte(`{"\u006cong":0,`), members...)
	if bytes.Contains(line, []byte(`long"`)) || !schema.Valid(long) {
		return // the line already has this member
	}
	got, longFault := schema.Decode(long, fallback)
	if diff := cmp.Diff(*m, got, public); diff != "" {
		t.Fatalf("%s (-short way +long way):\n%s", line, diff)
	}
	if diff := cmp.Diff(err, longFault); diff != "" {
		t.Fatalf("%s (-short way +long way):\n%s", line, diff)
	}
}

func checkFault(t *testing.T, m *schema.Message, err *fault.Fault) {
	t.Helper()
	if err.Message == "" || err.Code() < 400 || err.Code() > 599 || err.EventCode() == "" {
		t.Fatalf("%+v", err)
	}
	answer := schema.AppendError(nil, m, err, stampOf(schema.Proof{}))
	checkLine(t, answer)
	got, err := schema.Decode(answer, m.Dialect)
	if err != nil || got.Dialect != m.Dialect || got.Kind != schema.KindError || got.Meta.Causation != m.Meta.ID || got.Meta.Correlation != m.Meta.Correlation {
		t.Fatalf("answer %s: %v", answer, err)
	}
}

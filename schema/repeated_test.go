package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestAnswersFitALine checks that any frame can be answered on a line: a member that is too long to repeat is refused by name, and the
// answer repeats the others (MESSAGE 4.3.2 #1).
func TestAnswersFitALine(t *testing.T) {
	t.Parallel()
	const room = 12 << 10
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, typ, id, correlation string
		field                      string // with an @ if the dialects differ
		keep                       [3]bool
	}{
		{"all that fits", "Aa.B", long(room - 5), "c", "", [3]bool{true, true, true}},
		{"id", "Aa.B", long(room - 4), "c", "metadata.id", [3]bool{true, false, true}},
		{"correlation", "Aa.B", "i", long(room), "metadata.correlation", [3]bool{true, true, false}},
		{"type", "A" + long(room) + ".B", "i", "c", "@type", [3]bool{false, true, true}},
		{"both", "Aa.B", long(8100), long(8101), "metadata.correlation", [3]bool{true, true, false}},
		{"written longer than it is", "Aa.B", strings.Repeat("\x01", room/6), "c", "metadata.id", [3]bool{true, false, true}},
	} {
		for _, d := range []schema.Dialect{schema.OsMessage, schema.OsEvent} {
			frame := fmt.Sprintf(`{"kind":"query","type":%q,"data":{},"metadata":{"id":%s,"timestamp":1,"correlation":%q}}`,
				c.typ, quoted(c.id), c.correlation)
			field := strings.Replace(c.field, "@type", "type", 1)
			if d == schema.OsEvent {
				frame = strings.NewReplacer(`"type":`, `"name":`, `"kind":`, `"type":`, `"data":`, `"payload":`).Replace(frame)
				field = strings.Replace(c.field, "@type", "name", 1)
			}
			m, err := schema.Decode([]byte(frame), d)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			err = m.Shorten(schema.MaxLine)
			switch {
			case field == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case field != "" && (err == nil || err.Field != field || err.Kind != fault.SchemaViolation):
				t.Errorf("%s: got %+v, want an error about %s", c.name, err, field)
			}
			if kept := [3]bool{m.Type == c.typ, m.Meta.ID == c.id, m.Meta.Correlation == c.correlation}; kept != c.keep {
				t.Errorf("%s: kept %v, want %v", c.name, kept, c.keep)
			}
			stamp := schema.NewStamper().Next(time.UnixMilli(1))
			stamp.Proof = schema.Proof{Seq: 1 << 53, PID: 1 << 53, Tick: 1 << 53, LatencyUS: 1 << 53}
			quoting := strings.Repeat("\x01", room)
			endless := fault.WireInvalidInput.New("%s", quoting)
			endless.Field, endless.Cause = quoting, fault.KernelInternal.New("%s", quoting)
			for _, e := range []*fault.Fault{fault.KernelInternal.New("%s", long(2000)), schema.Brief(endless)} {
				if answer := schema.AppendError(nil, &m, e, &stamp); len(answer)-1 > schema.MaxLine {
					t.Errorf("%s: the answer has %d bytes", c.name, len(answer)-1)
				}
			}
		}
	}
}

func quoted(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return `"` + b.String() + `"`
}

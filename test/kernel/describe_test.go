package kernel_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestDescribe queries each syscall by both names of the query, in both dialects, over both sockets. It checks that the
// answers are the same except for one member, whose name depends on the dialect (MESSAGE 4.8, EVENT 4.8).
func TestDescribe(t *testing.T) {
	t.Parallel()
	d := start(t)
	for socket := range d.sockets() {
		c := d.wire(t, socket)
		for _, row := range schema.Syscalls() {
			if row.Internal {
				continue
			}
			want := row.Describe(schema.OsMessage).AppendJSON(nil)
			event := bytes.Replace(want, []byte(`,"kind":"`), []byte(`,"type":"`), 1)
			if !bytes.HasPrefix(want, fmt.Appendf(nil, `{"name":%q,"kind":%q,"description":"`, row.Type, row.Kind)) {
				t.Errorf("%s: description begins %.200s", row.Type, want)
			}
			for _, question := range []string{"Syscall.Describe", "Sys.Describe"} {
				c.send(fmt.Sprintf(`{"kind":"query","type":%q,"data":{"name":%q},"metadata":{"id":"m","timestamp":0}}`+"\n", question, row.Type))
				c.send(fmt.Sprintf(`{"type":"query","name":%q,"payload":{"name":%q}}`+"\n", question, row.Type))
				if m := c.next(); m.Kind != schema.KindReply || m.Type != question || !bytes.Equal(m.Data, want) {
					t.Errorf("%s of %s: %s %s %.300s", question, row.Type, m.Type, m.Kind, m.Data)
				}
				if m := c.next(); m.Kind != schema.KindReply || m.Dialect != schema.OsEvent || m.Type != question || !bytes.Equal(m.Data, event) {
					t.Errorf("%s of %s as an OsEvent: %s %.300s", question, row.Type, m.Kind, m.Data)
				}
			}
		}
	}
}

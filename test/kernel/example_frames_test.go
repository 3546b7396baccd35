package kernel_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFirstExample sends the query of the first example in both specifications, and gets the stored value itself, with the
// query as its cause.
func TestFirstExample(t *testing.T) {
	t.Parallel()
	const key, at, note = "/notes/1", 1735000000000, `"Note content here"`
	c := start(t).dialOn(t, "events.sock")
	c.call("Memory.Set", fmt.Sprintf(`{"key":%q,"value":%s}`, key, note), nil)

	c.write(fmt.Sprintf(`{"kind":"query","type":"Memory.Get","data":{"key":%q},"metadata":{"id":"msg-%d","timestamp":%d}}`+"\n", key, 123, at))
	if a := c.next(); a.Kind != "reply" || a.Type != "Memory.Get" || string(a.Data) != note || a.Metadata.Causation != "msg-123" || a.Metadata.ID == "" {
		t.Errorf("OsMessage: %+v", a)
	}
	c.write(fmt.Sprintf(`{"type":"query","name":"Memory.Get","payload":{"key":%q},"metadata":{"id":"evt-%d","timestamp":%d}}`+"\n", key, 123, at))
	if a := c.next(); a.Type != "response" || a.Name != "Memory.Get" || string(a.Payload) != note || a.Metadata.Causation != "evt-123" || a.Metadata.ID == "" {
		t.Errorf("OsEvent: %+v", a)
	}
}

// TestMessageStore finds each message that was sent in the audit log, in the order in which they took effect, in either
// dialect and across a restart. There is no call that would send one again.
func TestMessageStore(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	type sent struct{ id, typ, correlation string }
	var want []sent
	for i, call := range [][2]string{
		{"Memory.Set", `{"key":"a","value":1}`}, {"Memory.Get", `{"key":"a"}`}, {"Memory.Get", `{"key":"gone"}`}, {"Syscall.Echo", `{"message":"m"}`},
	} {
		for _, dialect := range dialects() {
			correlation := fmt.Sprintf("flow-%d-%s", i, dialect)
			a := c.speak(dialect, call[0], call[1], fmt.Sprintf(`,"correlation":%q,"causation":"elsewhere"`, correlation))
			want = append(want, sent{a.Metadata.Causation, call[0], correlation})
		}
	}
	d.restart(t)
	c = d.dial(t)
	log := c.wholeLog()
	if len(log) < len(want) {
		t.Fatalf("%d entries, want %d", len(log), len(want))
	}
	for i, w := range want {
		if e := log[i]; (sent{e.ID, e.Type, e.Correlation}) != w || e.Causation != "elsewhere" || i > 0 && e.Seq <= log[i-1].Seq {
			t.Errorf("entry %d: %+v, want %+v", i, e, w)
		}
	}
	for _, name := range []string{"Message.Replay", "Event.Replay"} {
		c.write(fmt.Sprintf(`{"kind":"query","type":%q,"data":{"until_seq":2,"key":"a"},"metadata":{"id":"r","timestamp":1}}`+"\n", name))
		if a := c.next(); a.Kind != "reply" || a.Type != name || !strings.HasSuffix(string(a.Data), `"value":1}`) {
			t.Errorf("%s: %s", name, a.Data)
		}
	}
}

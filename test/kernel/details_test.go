package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDetails: in OsEvent an error names its subject in its details.
func TestDetails(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dialOn(t, "events.sock")
	c.write(`{"type":"command","name":"Syscall.Spawn","payload":{"child_agent_id":"bob","capabilities":{"allowed_syscalls":["Syscall.Alloc"],"resource_quotas":{"gpu":2}}}}` + "\n")
	c.next()
	c.write(`{"type":"command","name":"Syscall.Register","payload":{"name":"Sum.Add","type":"query","inputSchema":{"type":"object"},"provider":"connection"}}` + "\n")
	c.next()
	for _, test := range []struct {
		typ, name, payload string
		want               map[string]string
	}{
		{"query", "Foo.Bar", `{}`, map[string]string{"syscall": "Foo.Bar"}},
		{"query", "Sys.Describe", `{"name":"Memory.Sett"}`, map[string]string{"syscall": "Memory.Sett"}},
		{"query", "Memory.Get", `{"key":"notes/123"}`, map[string]string{"key": "/notes/123"}},
		{"command", "Memory.Set", `{"key":"a"}`, map[string]string{"field": "value"}},
		{"command", "Memory.Set", `{"key":"a","value":1,"pid":1}`, map[string]string{"pid": "1"}},
		{"command", "Syscall.Alloc", `{"resource_id":"gpu","amount":3,"pid":1}`, map[string]string{"pid": "1", "resource": "gpu"}},
		{"command", "Syscall.Alloc", `{"resource_id":"none","amount":3}`, map[string]string{"resource": "none"}},
		{"query", "Process.Get", `{"pid":99}`, map[string]string{"pid": "99"}},
		{"command", "Syscall.Call", `{"syscall":"nope"}`, map[string]string{"syscall": "nope"}},
		{"query", "FileSystem.Resolve", `{"uri":"os:///a"}`, map[string]string{"uri": "os:///a"}},
		{"command", "Http.Fetch", `{"url":"http://127.0.0.1/"}`, map[string]string{"host": "127.0.0.1"}},
		{"command", "Sys.Register", `{"name":"Sum.Add","type":"command","inputSchema":{},"provider":"connection"}`, map[string]string{"syscall": "Sum.Add"}},
		{"command", "Syscall.Unregister", `{"name":"Sum.Sub"}`, map[string]string{"syscall": "Sum.Sub"}},
		{"command", "Syscall.Complete", `{"call_id":"x","data":1}`, map[string]string{"call_id": "x"}},
		{"command", "Syscall.Progress", `{"call_id":"x","progress":1}`, map[string]string{"call_id": "x"}},
		{"query", "Sum.Add", `7`, map[string]string{"field": "data"}},
		{"query", "Sum.Add", `{}`, map[string]string{"syscall": "Sum.Add"}}, // it would wait for itself
	} {
		c.write(fmt.Sprintf(`{"type":%q,"name":%q,"payload":%s}`+"\n", test.typ, test.name, test.payload))
		a := c.next()
		var failure struct{ Details map[string]string }
		if err := json.Unmarshal(a.Payload, &failure); err != nil || a.Type != "error" {
			t.Errorf("%s %s: %s %s", test.name, test.payload, a.Type, a.Payload)
		}
		if diff := cmp.Diff(test.want, failure.Details); diff != "" {
			t.Errorf("%s %s: %s", test.name, test.payload, diff)
		}
	}
}

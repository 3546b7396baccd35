package kernel_test

import (
	"encoding/json"
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// dialects returns both dialects.
func dialects() []schema.Dialect { return []schema.Dialect{schema.OsMessage, schema.OsEvent} }

// speak makes a call in a dialect, and returns its answer converted to OsMessage. The answer must be in the same dialect
// and name the call. extra has further members of its metadata.
func (c *client) speak(d schema.Dialect, typ, data, extra string) answer {
	c.t.Helper()
	if d == schema.OsMessage {
		return c.askWith(typ, data, extra)
	}
	row, ok := schema.Lookup(typ)
	if !ok {
		c.t.Fatalf("%s is no syscall", typ)
	}
	kind := "command"
	if row.Kind == schema.KindQuery {
		kind = "query"
	}
	c.last++
	id := fmt.Sprintf("%s-%d", typ, c.last)
	c.write(fmt.Sprintf(`{"type":%q,"name":%q,"payload":%s,"metadata":{"id":%q,"timestamp":1%s}}`+"\n", kind, typ, data, id, extra))
	a := c.next()
	if a.Kind != "" || a.Name != typ || a.Metadata.Causation != id {
		c.t.Fatalf("%s %s as an OsEvent: got %+v", typ, data, a)
	}
	kinds := map[string]string{"response": "reply", "error": "error"}
	return answer{Kind: kinds[a.Type], Type: a.Name, Data: a.Payload, Metadata: a.Metadata}
}

// failure has the members of an error in either dialect: a number or a word, and a message.
type failure struct {
	Code    any    `json:"code"`
	Message string `json:"message"`
}

func (c *client) failure(a answer) (f failure) {
	c.t.Helper()
	if err := json.Unmarshal(a.Data, &f); err != nil || a.Kind != "error" {
		c.t.Fatalf("%s: got %s %s, want an error", a.Type, a.Kind, a.Data)
	}
	return f
}

// listed returns the syscalls of a kind that the kernel lists.
func (c *client) listed(kind schema.Kind) (types []string) {
	c.t.Helper()
	var out struct {
		Syscalls []string `json:"syscalls"`
	}
	c.call("Syscall.List", `{}`, &out)
	for _, typ := range out.Syscalls {
		row, ok := schema.Lookup(typ)
		if !ok {
			c.t.Fatalf("%s is listed and is no syscall", typ)
		}
		if row.Kind == kind {
			types = append(types, typ)
		}
	}
	return types
}

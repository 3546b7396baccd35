package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// asked is a Syscall.Requested.
type asked struct {
	CallID string          `json:"call_id"`
	Type   string          `json:"type"`
	Data   json.RawMessage `json:"data"`
	PID    int64           `json:"pid"`
}

// request receives the next frame of a provider, which must be a request to carry out a call.
func (c *client) request(d schema.Dialect) (r asked) {
	c.t.Helper()
	testkit.Must(c.t, json.Unmarshal(c.event(d, "Syscall.Requested").Data, &r))
	return r
}

// provide registers a syscall that the connection provides, and answers its calls with f until it is closed. f may omit the
// id of an error, which is then a provider's.
func (c *client) provide(name string, f func(asked) string) {
	c.t.Helper()
	c.call("Syscall.Register", registering(name, ""), nil)
	go func() {
		for {
			line, err := c.lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var a answer
			var r asked
			if json.Unmarshal(line, &a) == nil && a.Type == "Syscall.Requested" && json.Unmarshal(a.Data, &r) == nil {
				_, _ = fmt.Fprintf(c.conn, `{"kind":"command","type":"Syscall.Complete","data":{"call_id":%q,%s},"metadata":{"id":"x","timestamp":1}}`+"\n", r.CallID, f(r))
			}
		}
	}()
}

func registering(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"kind":"query","input":{"type":"object"},"provider":"connection"%s}`, name, more)
}

// use makes a call of a registered query, and returns its answer.
func (c *client) use(d schema.Dialect, name, data string) answer {
	c.t.Helper()
	c.last++
	id := fmt.Sprintf("use-%d", c.last)
	if d == schema.OsEvent {
		c.write(fmt.Sprintf(`{"type":"query","name":%q,"payload":%s,"metadata":{"id":%q,"timestamp":1}}`+"\n", name, data, id))
	} else {
		c.write(fmt.Sprintf(`{"kind":"query","type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1}}`+"\n", name, data, id))
	}
	a := c.next()
	if d == schema.OsEvent {
		a = answer{Kind: map[string]string{"response": "reply", "error": "error"}[a.Type], Type: a.Name, Data: a.Payload, Metadata: a.Metadata}
	}
	if a.Metadata.Causation != id || a.Type != name {
		c.t.Fatalf("%s answers %q of type %s", a.Data, a.Metadata.Causation, a.Type)
	}
	return a
}

// TestRegister: a syscall that a connection provides is listed, described, granted only by its name, called, checked and
// journaled, in either dialect. It outlives the daemon, without a provider until that registers again.
func TestRegister(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			provider, operator := d.dial(t), d.dial(t)
			data := registering("Sum.Add", "")
			if dialect == schema.OsEvent {
				data = strings.NewReplacer(`"kind"`, `"type"`, `"input"`, `"inputSchema"`).Replace(data)
			}
			if a := provider.speak(dialect, "Syscall.Register", data, ""); !strings.Contains(string(a.Data), `"introspection":{"name":"Sum.Add"`) {
				t.Fatalf("%s", a.Data)
			}
			agent, pid := d.attached(t, "a")
			may := func(syscalls string) {
				t.Helper()
				operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[%s]}`, pid, syscalls), nil)
			}
			may(`"*"`)
			denied := codes{schema.OsMessage: 403.0, schema.OsEvent: "UNAUTHORIZED"}[dialect]
			if f := agent.failure(agent.use(dialect, "Sum.Add", `{}`)); f.Code != denied || !strings.Contains(f.Message, "--add Sum.Add") {
				t.Errorf("by *: %+v", f)
			}
			if a := agent.call("Syscall.List", `{}`, nil); strings.Contains(string(a.Data), "Sum.Add") {
				t.Errorf("listed without a grant: %s", a.Data)
			}
			may(`"Sum.Add"`)
			if a := agent.call("Syscall.List", `{}`, nil); !strings.Contains(string(a.Data), `"Sum.Add"`) {
				t.Errorf("not listed: %s", a.Data)
			}
			if a := agent.speak(dialect, "Syscall.Describe", `{"name":"Sum.Add"}`, ""); !strings.Contains(string(a.Data), `"query"`) || !strings.Contains(string(a.Data), `"input":{"type":"object"}`) {
				t.Errorf("described: %s", a.Data)
			}
			if a := operator.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":"Sum.Add"}`, pid), nil); !strings.Contains(string(a.Data), `"allowed":true`) {
				t.Errorf("checked: %s", a.Data)
			}

			var all sync.WaitGroup
			all.Go(func() {
				a := agent.use(dialect, "Sum.Add", `{"a":1,"b":2.50}`)
				if a.Kind != "reply" || string(a.Data) != `{"sum":3.50}` || a.Metadata.Kernel.PID != pid {
					t.Errorf("%s, proof %+v", a.Data, a.Metadata.Kernel)
				}
			})
			r := provider.request(dialect)
			if r.Type != "Sum.Add" || string(r.Data) != `{"a":1,"b":2.50}` || r.PID != pid {
				t.Errorf("asked %+v", r)
			}
			done := fmt.Sprintf(`{"call_id":%q,"data":{"sum":3.50}}`, r.CallID)
			if a := provider.speak(dialect, "Syscall.Complete", done, ""); a.Kind != "reply" {
				t.Errorf("%s", a.Data)
			}
			all.Wait()
			missing := codes{schema.OsMessage: 404.0, schema.OsEvent: "NOT_FOUND"}[dialect]
			if f := provider.failure(provider.speak(dialect, "Syscall.Complete", done, "")); f.Code != missing {
				t.Errorf("answered twice: %+v", f)
			}
			if a := operator.call("Audit.Log", fmt.Sprintf(`{"pid":%d}`, pid), nil); !strings.Contains(string(a.Data), `"type":"Sum.Add"`) {
				t.Errorf("not journaled: %s", a.Data)
			}

			d.restart(t)
			away := codes{schema.OsMessage: 503.0, schema.OsEvent: "UNAVAILABLE"}[dialect]
			agent, _ = d.attached(t, "a")
			if f := agent.failure(agent.use(dialect, "Sum.Add", `{}`)); f.Code != away {
				t.Errorf("without a provider: %+v", f)
			}
			provider = d.dial(t)
			provider.provide("Sum.Add", func(asked) string { return `"data":"again"` })
			if a := agent.use(dialect, "Sum.Add", `{}`); string(a.Data) != `"again"` {
				t.Errorf("bound again: %s %s", a.Kind, a.Data)
			}
			operator = d.dial(t)
			operator.call("Syscall.Unregister", `{"name":"Sum.Add"}`, nil)
			if f := agent.failure(agent.use(dialect, "Sum.Add", `{}`)); f.Code != missing {
				t.Errorf("unregistered: %+v", f)
			}
		})
	}
}

// TestRegisterInABurst: a call in the same write after the registration finds it, and one after its end does not.
func TestRegisterInABurst(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.dial(t).provide("Sum.Add", func(asked) string { return `"data":1` })
	c := d.dial(t)
	frame := func(kind, typ, data string) string {
		return fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1}}`+"\n", kind, typ, data, typ)
	}
	c.write(frame("command", "Syscall.Unregister", `{"name":"Sum.Add"}`) + frame("query", "Sum.Add", `{}`) +
		frame("command", "Syscall.Register", registering("Sum.Add", "")) + frame("query", "Sum.Add", `{}`))
	for i, want := range []string{`true`, `"code":404`, `"registered":true`, `"code":409`} { // the last would wait for itself
		if a := c.next(); !strings.Contains(string(a.Data), want) {
			t.Errorf("answer %d: %s, want %s", i, a.Data, want)
		}
	}
}

// TestProviders: whatever a provider does, its caller gets one answer, and a provider cannot answer the calls of others.
func TestProviders(t *testing.T) {
	t.Parallel()
	d := start(t)
	provider, other, caller := d.dial(t), d.dial(t), d.dial(t)
	provider.call("Syscall.Register", registering("Sum.Add", ""), nil)
	other.call("Syscall.Register", registering("Sum.Sub", ""), nil)
	answered := func(reply string, code int, text string) {
		t.Helper()
		got := make(chan answer, 1)
		go func() { got <- caller.use(schema.OsMessage, "Sum.Add", `{"n":1}`) }()
		r := provider.request(schema.OsMessage)
		other.refused(404, "Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":"forged"}`, r.CallID))
		provider.refused(422, "Syscall.Complete", fmt.Sprintf(`{"call_id":%q}`, r.CallID), "data")
		provider.refused(422, "Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":1,"error":{"message":"m"}}`, r.CallID), "data")
		provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,%s}`, r.CallID, reply), nil)
		a := <-got
		if code == 0 && (a.Kind != "reply" || string(a.Data) != text) ||
			code != 0 && (!strings.Contains(string(a.Data), fmt.Sprintf(`"code":%d`, code)) || !strings.Contains(string(a.Data), text)) {
			t.Errorf("%s: %s, want %d %s", reply, a.Data, code, text)
		}
	}
	answered(`"data":null`, 0, `null`)
	answered(`"data":{"n":[1,2]}`, 0, `{"n":[1,2]}`)
	answered(`"error":{"message":"no such card","code":404}`, 502, "no such card (404)")
	provider.refused(404, "Syscall.Complete", `{"call_id":"nobody's","data":1}`)
	if f := caller.failure(caller.use(schema.OsMessage, "Sum.Add", strings.Repeat("[", 57)+strings.Repeat("]", 57))); f.Code != 422.0 {
		t.Errorf("too deep: %+v", f)
	}
	caller.write(`{"kind":"command","type":"Sum.Add","data":{},"metadata":{"id":"kind","timestamp":1}}` + "\n")
	if f := caller.failure(caller.next()); f.Code != 422.0 {
		t.Errorf("a query as a command: %+v", f)
	}

	// It answers while its own connection waits for another call.
	provider.send("Ipc.Receive", `{"wait_ms":60000}`, "")
	got := make(chan answer, 1)
	go func() { got <- caller.use(schema.OsMessage, "Sum.Add", `{}`) }()
	r := provider.request(schema.OsMessage)
	provider.send("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":"beside"}`, r.CallID), "")
	if a := <-got; string(a.Data) != `"beside"` {
		t.Errorf("while a call waits: %s", a.Data)
	}

	// It dies while it carries out a call.
	go func() { got <- caller.use(schema.OsMessage, "Sum.Sub", `{}`) }()
	other.request(schema.OsMessage)
	testkit.Must(t, other.conn.Close())
	if f := caller.failure(<-got); f.Code != 502.0 || !strings.Contains(f.Message, "ended before it answered") {
		t.Errorf("a provider that disconnected: %+v", f)
	}
	if f := caller.failure(caller.use(schema.OsMessage, "Sum.Sub", `{}`)); f.Code != 503.0 {
		t.Errorf("without a connection of the provider: %+v", f)
	}
}

// TestManyRegistered: the operator can register at most a thousand in an origin, which are listed and described, also after
// restarts; 64 callers share one provider.
func TestManyRegistered(t *testing.T) {
	t.Parallel()
	d := start(t)
	provider := d.dial(t)
	for i := range 999 {
		provider.call("Syscall.Register", registering(fmt.Sprintf("Many.N%d", i), ""), nil)
	}
	other := d.dial(t)
	other.provide("Sum.Add", func(r asked) string { return `"data":` + string(r.Data) })
	var all sync.WaitGroup
	for i := range 64 {
		c := d.dial(t)
		all.Go(func() {
			for range 4 {
				data := fmt.Sprintf(`{"n":%d}`, i)
				if a := c.use(schema.OsMessage, "Sum.Add", data); string(a.Data) != data {
					t.Errorf("caller %d: %s", i, a.Data)
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		c := d.dialOn(t, "events.sock") // whose lines have room
		if a := c.call("Syscall.List", `{}`, nil); strings.Count(string(a.Data), `"Many.`) != 999 {
			t.Errorf("%d are listed", strings.Count(string(a.Data), `"Many.`))
		}
		for i := range 999 {
			name := fmt.Sprintf("Many.N%d", i)
			if a := c.call("Syscall.Describe", fmt.Sprintf(`{"name":%q}`, name), nil); !strings.Contains(string(a.Data), name) {
				t.Fatalf("described: %s", a.Data)
			}
		}
		c.refused(429, "Syscall.Register", registering("Many.More", ""), "1000")
		d.restart(t)
	}
	c := d.dial(t)
	c.provide("Many.N998", func(asked) string { return `"data":1` })
	if a := d.dial(t).use(schema.OsMessage, "Many.N998", `{}`); string(a.Data) != `1` {
		t.Errorf("after two restarts: %s", a.Data)
	}
}

// TestAgentRegisters: an agent needs Syscall.Register by its name, may register ten times a minute, only for its own
// connection, and cannot change others' registrations.
func TestAgentRegisters(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	agent, pid := d.attached(t, "a")
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"]}`, pid), nil)
	agent.refused(403, "Syscall.Register", registering("Sum.Add", ""), "by its name")
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Syscall.Register","Syscall.Unregister"]}`, pid), nil)
	operator.call("Syscall.Register", registering("Sum.Op", ""), nil)
	agent.refused(403, "Syscall.Register", registering("Sum.Op", ""), "belongs to pid 0")
	agent.refused(403, "Syscall.Unregister", `{"name":"Sum.Op"}`, "belongs to pid 0")
	agent.refused(403, "Syscall.Register", `{"name":"Sum.Path","kind":"query","input":{},"path":"os/tools/sum"}`, "only the operator")
	for range 9 {
		agent.call("Syscall.Register", registering("Sum.Add", ""), nil)
	}
	agent.refused(409, "Syscall.Register", registering("Sum.Add", `,"description":"other"`), "something else")
	agent.call("Syscall.Register", registering("Sum.More", ""), nil)
	agent.refused(429, "Syscall.Register", registering("Sum.More", ""), "in the last minute")
	d.restart(t)
	agent, _ = d.attached(t, "a")
	agent.refused(429, "Syscall.Register", registering("Sum.Add", ""), "in the last minute")
	agent.call("Syscall.Unregister", `{"name":"Sum.Add"}`, nil)
	agent.refused(404, "Syscall.Unregister", `{"name":"Sum.Add"}`)
}

// TestProviderThatEnded: an ended process provides nothing, although its connection is open.
func TestProviderThatEnded(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	agent, pid := d.attached(t, "a")
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Syscall.Register"]}`, pid), nil)
	agent.call("Syscall.Register", registering("Sum.Add", ""), nil)
	operator.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if f := operator.failure(operator.use(schema.OsMessage, "Sum.Add", `{}`)); f.Code != 503.0 || !strings.Contains(f.Message, "has ended") {
		t.Errorf("%+v", f)
	}
	operator.call("Syscall.Register", registering("Sum.Add", ""), nil) // on its behalf
}

// TestRegisterBadInput: registrations that are refused, and connections that provide and cannot change their process.
func TestRegisterBadInput(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for data, text := range map[string]string{
		`{}`: "name",
		`{"name":"sum.add","kind":"query","input":{},"provider":"connection"}`:                            "Domain.Action",
		`{"name":"Memory.Sum","kind":"query","input":{},"provider":"connection"}`:                         "not the kernel's",
		`{"name":"Job.Mine","kind":"query","input":{},"provider":"connection"}`:                           "not the kernel's",
		`{"name":"Memori.Set","kind":"query","input":{},"provider":"connection"}`:                         "too much like Memory.Set",
		`{"name":"Sum.Add","input":{},"provider":"connection"}`:                                           "kind",
		`{"name":"Sum.Add","kind":"query","type":"query","input":{},"provider":"connection"}`:             "kind",
		`{"name":"Sum.Add","kind":"event","input":{},"provider":"connection"}`:                            "kind",
		`{"name":"Sum.Add","kind":"query","input":{}}`:                                                    "provider",
		`{"name":"Sum.Add","kind":"query","input":{},"provider":"connection","path":"os/a"}`:              "provider",
		`{"name":"Sum.Add","kind":"query","input":{},"path":"../a"}`:                                      "path",
		`{"name":"Sum.Add","kind":"query","provider":"connection"}`:                                       "input",
		`{"name":"Sum.Add","kind":"query","input":[],"provider":"connection"}`:                            "input",
		`{"name":"Sum.Add","kind":"query","input":{},"inputSchema":{},"provider":"connection"}`:           "input",
		`{"name":"Sum.Add","kind":"query","input":{},"output":7,"provider":"connection"}`:                 "output",
		`{"name":"Sum.Add","kind":"query","input":{},"provider":"connection","code":"export"}`:            "code",
		`{"name":"` + strings.Repeat("A", 129) + `.B","kind":"query","input":{},"provider":"connection"}`: "name",
	} {
		c.refused(422, "Syscall.Register", data, text)
	}
	c.call("Syscall.Register", registering("Sum.Add", ""), nil)
	c.refused(409, "Process.Attach", `{"agent_id":"a"}`, "provides")
	c.refused(422, "Capability.Grant", `{"pid":1,"allowed_syscalls":["Sum.Sub"]}`, "Sum.Sub")
}

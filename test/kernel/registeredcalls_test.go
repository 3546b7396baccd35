package kernel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

const summing = `{"name":"Sum.Add","kind":"query","provider":"connection",
"input":{"type":"object","properties":{"list":{"type":"array","items":{"type":"number"}}},"required":["list"],"additionalProperties":false},
"output":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}}`

// TestRegisteredSchemas: data that does not match the schema of a registered syscall never reaches its provider, and an
// answer that does not match never reaches the caller, also after a restart.
func TestRegisteredSchemas(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			for range 2 {
				provider, caller := d.dial(t), d.dial(t)
				provider.call("Syscall.Register", strings.ReplaceAll(summing, "\n", ""), nil)
				wrong := codes{schema.OsMessage: 422.0, schema.OsEvent: "INVALID_INPUT"}[dialect]
				for data, place := range map[string]string{
					`{}`: "list is missing", `{"list":[1,"2"]}`: "list[1] must be a number", `{"list":[],"more":1}`: "more is not a member", `7`: "data must be an object", `null`: "data must be an object",
				} {
					if f := caller.failure(caller.use(dialect, "Sum.Add", data)); f.Code != wrong || !strings.Contains(f.Message, place) {
						t.Errorf("%s: %+v, want %s", data, f, place)
					}
				}
				for said, place := range map[string]string{`"data":{"sum":"3"}`: "sum must be a number", `"data":3`: "data must be an object", `"data":{"sum":3}`: ""} {
					got := make(chan answer, 1)
					go func() { got <- caller.use(dialect, "Sum.Add", `{"list":[1,2]}`) }()
					r := provider.request(schema.OsMessage) // the first request that it got
					provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,%s}`, r.CallID, said), nil)
					a := <-got
					if place == "" {
						if a.Kind != "reply" || string(a.Data) != `{"sum":3}` {
							t.Errorf("%s: %s", said, a.Data)
						}
					} else if f := caller.failure(a); f.Code != (codes{schema.OsMessage: 502.0, schema.OsEvent: "INTERNAL_ERROR"})[dialect] || !strings.Contains(f.Message, place) {
						t.Errorf("%s: %+v, want %s", said, f, place)
					}
				}
				d.restart(t)
			}
		})
	}
}

// TestNoSchema: registrations need schemas that can be checked.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for schemas, text := range map[string]string{
		`"input":{"properties":{"a":{"type":"strnig"}}}`:                   "properties.a.type must be one of",
		`"input":{"properties":{"` + strings.Repeat("a", 10_000) + `":7}}`: "must be a schema",
		`"input":{"$ref":"#"}`:                          "without end",
		`"input":{"$ref":"https://example.com/schema"}`: "$ref",
		`"input":{"pattern":"["}`:                       "pattern is no regular expression",
		`"input":{"pattern":"(a{99}){99}"}`:             "pattern is too large",
		`"input":{},"output":{"minimum":"1"}`:           "output is no JSON Schema that can be checked: minimum must be a number",
		`"input":{},"output":` + strings.Repeat(`{"not":`, 60) + `{}` + strings.Repeat(`}`, 60): "nested deeper",
	} {
		c.refused(422, "Syscall.Register", `{"name":"Sum.Add","kind":"query","provider":"connection",`+schemas+`}`, text)
	}
}

// start sends a call of a registered query that names its cause, "" for none.
func (c *client) start(name, cause string) {
	c.t.Helper()
	if cause != "" {
		cause = fmt.Sprintf(`,"causation":%q`, cause)
	}
	c.write(fmt.Sprintf(`{"kind":"query","type":%q,"data":{},"metadata":{"id":%q,"timestamp":1%s}}`+"\n", name, name, cause))
}

// complete answers a call.
func (c *client) complete(r asked, reply string) {
	c.t.Helper()
	c.send("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":%q}`, r.CallID, reply), "")
}

// TestCallsInACircle: a call whose provider waits for it, through any number of connections, is refused immediately, and
// the calls that led to it continue.
func TestCallsInACircle(t *testing.T) {
	t.Parallel()
	d := start(t)
	one, two, three, caller := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
	one.call("Syscall.Register", registering("One.Do", ""), nil)
	two.call("Syscall.Register", registering("Two.Do", ""), nil)
	three.call("Syscall.Register", registering("Three.Do", ""), nil)
	caller.start("One.Do", "")
	first := one.request(schema.OsMessage)
	one.start("Two.Do", "")
	second := two.request(schema.OsMessage)
	two.start("Three.Do", "")
	third := three.request(schema.OsMessage)
	for _, name := range []string{"One.Do", "Two.Do", "Three.Do"} {
		three.start(name, "")
		if f := three.failure(three.next()); f.Code != 409.0 || !strings.Contains(f.Message, "wait for itself") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	three.complete(third, "3")
	two.complete(second, "2")
	one.complete(first, "1")
	if a := caller.next(); string(a.Data) != `"1"` {
		t.Errorf("the first call: %s", a.Data)
	}
}

// TestCauseOfACall: a provider names the call for which it makes another. On another connection that detects a circle; a
// call with a different cause is not one.
func TestCauseOfACall(t *testing.T) {
	t.Parallel()
	d := start(t)
	one, two, other, caller := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
	one.call("Syscall.Register", registering("One.Do", ""), nil)
	two.call("Syscall.Register", registering("Two.Do", ""), nil)
	caller.start("One.Do", "")
	first := one.request(schema.OsMessage)
	other.start("One.Do", first.CallID)
	if f := other.failure(other.next()); f.Code != 409.0 {
		t.Errorf("a call of its own by way of another connection: %+v", f)
	}
	one.start("Two.Do", first.CallID)
	second := two.request(schema.OsMessage)
	other.start("One.Do", second.CallID)
	if f := other.failure(other.next()); f.Code != 409.0 {
		t.Errorf("a circle by way of another connection: %+v", f)
	}
	two.start("One.Do", "another thing")
	third := one.request(schema.OsMessage)
	one.complete(third, "3")
	two.complete(second, "2")
	one.complete(first, "1")
	if a := caller.next(); string(a.Data) != `"1"` {
		t.Errorf("the first call: %s", a.Data)
	}
}

// TestNestedCalls: providers that call each other are not starved by their callers, however many there are.
func TestNestedCalls(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.dial(t).provide("Two.Do", func(asked) string { return `"data":2` })
	inner := d.dial(t)
	d.dial(t).provide("One.Do", func(asked) string { return `"data":` + string(inner.use(schema.OsMessage, "Two.Do", `{}`).Data) })
	var all sync.WaitGroup
	for range 40 {
		c := d.dial(t)
		all.Go(func() {
			if a := c.use(schema.OsMessage, "One.Do", `{}`); string(a.Data) != `2` {
				t.Errorf("%s", a.Data)
			}
		})
	}
	all.Wait()
}

// TestRegisteredInTheRecord: the audit log shows a registered syscall by its name, for any outcome of the call, and finds
// it by that name.
func TestRegisteredInTheRecord(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.dial(t).provide("Sum.Add", func(asked) string { return `"data":1` })
	agent, pid := d.attached(t, "a")
	agent.use(schema.OsMessage, "Sum.Add", `{}`)
	operator := d.dial(t)
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Sum.Add"]}`, pid), nil)
	agent.use(schema.OsMessage, "Sum.Add", `{}`)
	a := operator.call("Audit.Log", `{"type":"Sum.Add"}`, nil)
	for _, want := range []string{`"type":"Sum.Add"`, `"syscall_code":"Sum.Add"`, `"status":"denied"`, `"status":"ok"`} {
		if !strings.Contains(string(a.Data), want) {
			t.Errorf("no %s in %s", want, a.Data)
		}
	}
	if a := operator.call("Audit.Log", `{}`, nil); strings.Contains(string(a.Data), "Syscall.Invoke") {
		t.Errorf("there is %s", a.Data)
	}
}

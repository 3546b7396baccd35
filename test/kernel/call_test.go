package kernel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// answer is a frame from the kernel, in either dialect.
type answer struct {
	Kind     string          `json:"kind"`
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Data     json.RawMessage `json:"data"`
	Payload  json.RawMessage `json:"payload"`
	Metadata struct {
		ID          string          `json:"id"`
		Correlation string          `json:"correlation"`
		Causation   string          `json:"causation"`
		Kernel      *proof          `json:"kernel"`
		Refs        json.RawMessage `json:"refs"`
	} `json:"metadata"`
}

// proof is metadata.kernel (PROTOCOL 3).
type proof struct {
	Seq       int64 `json:"seq"`
	PID       int64 `json:"pid"`
	Tick      int64 `json:"tick"`
	LatencyUS int64 `json:"latency_us"`
}

// wireError is the data of an OsMessage error.
type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() answer {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("read answer: %v", err)
	}
	if _, fault := schema.Decode(bytes.TrimSuffix(line, []byte("\n")), schema.OsMessage); fault != nil {
		c.t.Fatalf("answer %.200q: %v", line, fault) // the kernel must accept its own answers as frames
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		c.t.Fatalf("answer %q: %v", line, err)
	}
	return a
}

// send sends a call without waiting for its answer, and returns its id. extra has further members of its metadata.
func (c *client) send(typ, data, extra string) string {
	c.t.Helper()
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
	c.write(fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1%s}}`+"\n", kind, typ, data, id, extra))
	return id
}

// ask makes a call and returns its answer of any kind. The answer must name the call and its entry.
func (c *client) ask(typ, data string) answer { c.t.Helper(); return c.askWith(typ, data, "") }

func (c *client) askWith(typ, data, extra string) answer {
	c.t.Helper()
	id := c.send(typ, data, extra)
	a := c.next()
	if a.Metadata.Causation != id || a.Type != typ {
		c.t.Fatalf("%s %s: %s answers %q of type %s", typ, data, a.Data, a.Metadata.Causation, a.Type)
	}
	return a
}

// call makes a call that must succeed, and decodes its data into out, unless that is nil. The data must match the
// description of Syscall.Describe.
func (c *client) call(typ, data string, out any) answer {
	c.t.Helper()
	want := c.shape(typ) // before the call, since events of a subscription may follow the answer
	a := c.ask(typ, data)
	if a.Kind != "reply" {
		c.t.Fatalf("%s %s: %s", typ, data, a.Data)
	}
	if k := a.Metadata.Kernel; k == nil || k.Seq < 1 {
		c.t.Fatalf("%s %s: no proof: %+v", typ, data, k)
	}
	want.check(c.t, a.Data)
	if out != nil {
		if err := json.Unmarshal(a.Data, out); err != nil {
			c.t.Fatalf("%s: %s: %v", typ, a.Data, err)
		}
	}
	return a
}

// refused makes a call that must fail with the code, and returns the message, which must contain every text.
func (c *client) refused(code int, typ, data string, texts ...string) string {
	c.t.Helper()
	a := c.ask(typ, data)
	var f wireError
	if err := json.Unmarshal(a.Data, &f); err != nil || a.Kind != "error" || f.Code != code {
		c.t.Fatalf("%s %s: got %s, want error %d", typ, data, a.Data, code)
	}
	for _, text := range texts {
		if !strings.Contains(f.Message, text) {
			c.t.Errorf("%s %s: message %q lacks %q", typ, data, f.Message, text)
		}
	}
	return f.Message
}

// spawn adds a process below parent (0: the operator) with the capability, and returns its PID.
func (c *client) spawn(parent int64, capability string) int64 {
	c.t.Helper()
	var out struct {
		ChildPID int64 `json:"child_pid"`
	}
	name := "agent"
	if c.spawned > 0 { // siblings have different names
		name = fmt.Sprintf("agent-%d", c.spawned)
	}
	c.spawned++
	c.call("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":%q,"capabilities":%s}`, parent, name, capability), &out)
	return out.ChildPID
}

// name returns the name of an agent.
func (c *client) name(pid int64) string {
	c.t.Helper()
	var out struct {
		AgentID string `json:"agent_id"`
	}
	c.call("Process.Get", fmt.Sprintf(`{"pid":%d}`, pid), &out)
	return out.AgentID
}

// shape is the output schema of a syscall that the kernel describes.
type shape struct {
	typ    string
	schema *jsonschema.Schema
}

func (c *client) shape(typ string) *shape {
	c.t.Helper()
	if s := c.shapes[typ]; s != nil {
		return s
	}
	a := c.ask("Syscall.Describe", fmt.Sprintf(`{"name":%q}`, typ))
	var description struct {
		Output json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(a.Data, &description); err != nil || description.Output == nil {
		c.t.Fatalf("describe %s: %s, %v", typ, a.Data, err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(description.Output))
	testkit.Must(c.t, err)
	compiler := jsonschema.NewCompiler()
	testkit.Must(c.t, compiler.AddResource("output.json", document))
	compiled, err := compiler.Compile("output.json")
	if err != nil {
		c.t.Fatalf("%s: %v", typ, err)
	}
	s := &shape{typ: typ, schema: compiled}
	c.shapes[typ] = s
	return s
}

func (s *shape) check(t interface {
	Helper()
	Errorf(string, ...any)
}, data []byte,
) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err == nil {
		err = s.schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: data %s does not fit its schema: %v", s.typ, data, err)
	}
}

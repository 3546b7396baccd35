package delta_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/schema"
)

const (
	home  = "https://home.local/"
	other = "https://other.local/"
)

// table is a process table: descriptors by PID from 1.
type table []schema.Descriptor

func (t table) Process(pid int64) *schema.Descriptor {
	if pid < 1 || pid > int64(len(t)) {
		return nil
	}
	return &t[pid-1]
}

func process(pid int64, agent, origin string) schema.Descriptor {
	return schema.Descriptor{PID: pid, AgentID: agent, State: "READY", Priority: "NORMAL", Origin: origin}
}

// shell does with a message what the shell does: it decodes, decides, takes steps, applies and keeps a journal.
type shell struct {
	rapid.TB
	domain  *delta.Domain
	origins table
	journal []kernel.Call
	tick    int64
}

// newShell has processes 1 and 2 of agent ada, 3 of agent bob, and 4 of another origin's ada.
func newShell(t rapid.TB) *shell {
	processes := table{process(1, "ada", home), process(2, "ada", home), process(3, "bob", home), process(4, "ada", other)}
	return &shell{TB: t, domain: delta.New(processes), origins: processes}
}

// run runs one message. It fails the test where deciding changes the state, or where the answer does not fit its JSON
// Schema.
func (s *shell) run(pid int64, typ, data string) (string, error) {
	s.Helper()
	origin := home
	if p := s.origins.Process(pid); p != nil {
		origin = p.Origin
	}
	call := s.request(pid, origin, typ, data)
	result, err := s.decide(call)
	if err != nil {
		return "", err
	}
	for _, step := range result.Steps {
		input, err := schema.Marshal(step.Input)
		if err != nil {
			s.Fatal(err)
		}
		own := s.request(kernel.Operator, origin, step.Type, string(input))
		done, err := s.decide(own)
		if err != nil {
			s.Fatalf("step %s: %v", step.Type, err)
		}
		s.apply(own, done.Data)
	}
	s.apply(call, result.Data)
	return string(result.Data), nil
}

func (s *shell) decide(call *kernel.Call) (kernel.Result, error) {
	s.Helper()
	before := s.snapshot()
	result, err := s.domain.Decide(call)
	if !bytes.Equal(before, s.snapshot()) {
		s.Fatalf("%s %s: Decide changed the state", call.Message.Type, call.Message.Data)
	}
	if err == nil {
		validate(s, call.Syscall, result.Data)
	}
	return result, err
}

func (s *shell) request(pid int64, origin, typ, data string) *kernel.Call {
	s.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		s.Fatalf("no syscall %s", typ)
	}
	raw := []byte(data)
	in, fault := row.Input.Decode(raw)
	if fault != nil {
		s.Fatalf("%s %s: %v", typ, data, fault)
	}
	return &kernel.Call{
		Syscall: row, Input: in, PID: pid, Origin: origin, Tick: s.tick,
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: raw},
	}
}

// apply applies a command and journals it. It overwrites the request afterwards, as a connection's next line does.
func (s *shell) apply(call *kernel.Call, data []byte) {
	if call.Syscall.Kind != schema.Command {
		return
	}
	entry := *call
	entry.Message.Data = bytes.Clone(call.Message.Data)
	entry.Data = bytes.Clone(data)
	s.journal = append(s.journal, entry)

	call.Data = data
	s.domain.Apply(call)
	for i := range call.Message.Data {
		call.Message.Data[i] = '#'
	}
}

// replay makes the state again from the journal: from what is written there, and without any process table.
func (s *shell) replay() *shell {
	s.Helper()
	again := &shell{TB: s, domain: delta.New(table{}), origins: s.origins}
	for _, entry := range s.journal {
		call := again.request(entry.PID, entry.Origin, entry.Message.Type, string(entry.Message.Data))
		call.Tick, call.Data = entry.Tick, entry.Data
		again.domain.Apply(call)
	}
	return again
}

// restored makes the state again from a snapshot.
func (s *shell) restored() *shell {
	s.Helper()
	again := &shell{TB: s, domain: delta.New(s.origins), origins: s.origins, tick: s.tick}
	for _, chunk := range s.chunks() {
		if err := again.domain.Restore(chunk); err != nil {
			s.Fatal(err)
		}
	}
	return again
}

func (s *shell) chunks() (all [][]byte) {
	s.Helper()
	if err := s.domain.Snapshot()(func(chunk []byte) error {
		all = append(all, chunk)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return all
}

func (s *shell) snapshot() []byte { return bytes.Join(s.chunks(), nil) }

// want runs a message and compares its answer.
func (s *shell) want(pid int64, typ, data, answer string) {
	s.Helper()
	if got, err := s.run(pid, typ, data); err != nil || got != answer {
		s.Errorf("pid %d, %s %s: %s, %v, want %s", pid, typ, data, got, err, answer)
	}
}

// fails runs a message and compares its error.
func (s *shell) fails(pid int64, typ, data string, class schema.Class, message string) {
	s.Helper()
	_, err := s.run(pid, typ, data)
	if shown, ok := errors.AsType[*schema.Error](err); !ok || shown.Class != class || shown.Message != message {
		s.Errorf("pid %d, %s %s: %v, want class %d: %s", pid, typ, data, err, class, message)
	}
}

// answer is that of Syscall.GetState about a process of the table, given the member memory: "" for none.
func (s *shell) answer(pid int64, memory string) string {
	p := s.origins.Process(pid)
	if memory != "" {
		memory = `,"memory":` + memory
	}
	return fmt.Sprintf(`{"pid":%d,"agent_id":%q,"parent_pid":0,"state":"READY","priority":"NORMAL","intent":"","role":"",`+
		`"resource_quota":{},"birth_tick":0,"origin":%q%s}`, pid, p.AgentID, p.Origin, memory)
}

var compiled sync.Map // *jsonschema.Schema by syscall type

// validate checks an answer against its row's JSON Schema.
func validate(t rapid.TB, row *schema.Syscall, data []byte) {
	t.Helper()
	known, ok := compiled.Load(row.Type)
	if !ok {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(row.Output.AppendJSONSchema(nil)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("output.json", doc); err != nil {
			t.Fatal(err)
		}
		known, _ = compiled.LoadOrStore(row.Type, c.MustCompile("output.json"))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s answers %s: %v", row.Type, data, err)
	}
	if err := known.(*jsonschema.Schema).Validate(value); err != nil {
		t.Fatalf("%s answers %s: %v", row.Type, data, err)
	}
}

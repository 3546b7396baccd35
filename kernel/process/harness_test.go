package process_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

const home = "https://home.local/"

var pools = []string{"ram", "gpu"}

// fatal is what both *testing.T and *rapid.T are.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// shell does to a domain what the kernel's shell does, and keeps what the journal would.
type shell struct {
	t      fatal
	domain *process.Domain
	tokens map[int64]*kernel.Token
	tick   int64

	journal []*kernel.Call // applied commands, their data as it was written
	steps   []kernel.Step  // of the last call
	effect  *kernel.Effect // of the last call
}

func newShell(t fatal) *shell {
	return &shell{t: t, domain: process.New(pools), tokens: map[int64]*kernel.Token{}}
}

// run decodes, decides, and applies a call, its steps first. It fails the test where Decide changes the state, or an
// answer does not fit its JSON Schema.
func (s *shell) run(pid int64, typ, data string) (string, *schema.Error) {
	s.t.Helper()
	call := s.request(pid, typ, []byte(data))
	before := snapshot(s.t, s.domain)
	result, err := s.domain.Decide(call)
	if !bytes.Equal(before, snapshot(s.t, s.domain)) {
		s.t.Fatalf("%s %s: Decide changed the state", typ, data)
	}
	if err != nil {
		var shown *schema.Error
		if !errors.As(err, &shown) || result.Data != nil {
			s.t.Fatalf("%s %s: error %v, data %s", typ, data, err, result.Data)
		}
		return "", shown
	}
	if call.Syscall.Outcome == "" { // else nobody sees what an intent answers
		validate(s.t, call.Syscall, result.Data)
	}
	s.effect = result.Effect
	s.steps = result.Steps
	for _, step := range result.Steps {
		raw, err := schema.Marshal(step.Input)
		if err != nil {
			s.t.Fatal(err)
		}
		own := s.request(kernel.Operator, step.Type, raw)
		if !own.Syscall.Internal {
			s.t.Fatalf("step %s is no internal row", step.Type)
		}
		if own.Syscall.Domain != schema.Process {
			s.endow(own.Input)
			continue
		}
		done, err := s.domain.Decide(own)
		if err != nil {
			s.t.Fatal(err)
		}
		own.Input = step.Input // live, a step is not decoded again
		s.apply(own, done.Data)
	}
	s.apply(call, result.Data)
	s.domain.Publish()
	return string(result.Data), nil
}

// endow does what the capability domain does with its steps.
func (s *shell) endow(in any) {
	switch in := in.(type) {
	case *schema.GrantInput:
		token, err := kernel.NewToken(in, []string{"gpu", "ram"})
		if err != nil {
			s.t.Fatalf("step Capability.Endow is refused: %v", err)
		}
		s.tokens[in.PID] = token
	case *schema.StripInput:
		for _, pid := range in.PIDs {
			delete(s.tokens, pid)
		}
	}
}

func (s *shell) request(pid int64, typ string, data []byte) *kernel.Call {
	s.t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		s.t.Fatalf("no syscall %s", typ)
	}
	in, fault := row.Input.Decode(data)
	if fault != nil {
		s.t.Fatalf("%s %s: %v", typ, data, fault)
	}
	return &kernel.Call{
		Syscall: row, Input: in, PID: pid, Token: s.tokens[pid], Origin: home, Tick: s.tick,
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: data},
	}
}

// apply applies a command, and overwrites the request afterwards, as a connection's next line does.
func (s *shell) apply(call *kernel.Call, data []byte) {
	if call.Syscall.Kind != schema.Command {
		return
	}
	call.Data = data
	entry := *call
	entry.Message.Data = slices.Clone(call.Message.Data)
	entry.Token = nil
	s.journal = append(s.journal, &entry)
	s.domain.Apply(call)
	for i := range call.Message.Data {
		call.Message.Data[i] = '#'
	}
}

// check compares the state with that of a fresh domain which replays the journal, under another configuration, and with
// that of one which is restored.
func (s *shell) check() {
	s.t.Helper()
	want := snapshot(s.t, s.domain)
	replayed := process.New(nil)
	for _, entry := range s.journal {
		in, fault := entry.Syscall.Input.Decode(entry.Message.Data)
		if fault != nil {
			s.t.Fatal(fault)
		}
		again := *entry
		again.Input = in
		replayed.Apply(&again)
	}
	if got := snapshot(s.t, replayed); !bytes.Equal(got, want) {
		s.t.Fatalf("replayed\n%s\nlive\n%s", got, want)
	}
	restored := restore(s.t, s.domain)
	if got := snapshot(s.t, restored); !bytes.Equal(got, want) {
		s.t.Fatalf("restored\n%s\nlive\n%s", got, want)
	}
}

func restore(t fatal, from *process.Domain) *process.Domain {
	t.Helper()
	to := process.New(pools)
	if err := from.Snapshot()(to.Restore); err != nil {
		t.Fatal(err)
	}
	to.Publish()
	return to
}

func snapshot(t fatal, d *process.Domain) []byte {
	t.Helper()
	var all []byte
	if err := d.Snapshot()(func(chunk []byte) error {
		all = append(all, chunk...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// get describes a process.
func (s *shell) get(pid int64) *schema.Descriptor {
	s.t.Helper()
	p := s.domain.Processes().Process(pid)
	if p == nil {
		s.t.Fatalf("no process %d", pid)
	}
	return p
}

// spawn has the given process spawn one, and returns its PID.
func (s *shell) spawn(parent int64) int64 {
	s.t.Helper()
	return s.spawnWith(parent, "")
}

// spawnWith does the same with the given member capabilities, where it is not empty.
func (s *shell) spawnWith(parent int64, capabilities string) int64 {
	s.t.Helper()
	got, err := s.run(parent, "Syscall.Spawn", spawning(capabilities))
	if err != nil {
		s.t.Fatal(err)
	}
	row, _ := schema.Lookup("Syscall.Spawn")
	out, fault := row.Output.Decode([]byte(got))
	if fault != nil {
		s.t.Fatal(fault)
	}
	return out.(*schema.SpawnOutput).ChildPID
}

func spawning(capabilities string) string {
	if capabilities == "" {
		return `{"child_agent_id":"a"}`
	}
	return `{"child_agent_id":"a","capabilities":` + capabilities + `}`
}

func (s *shell) pids() []int64 {
	var pids []int64
	for pid := int64(1); s.domain.Processes().Process(pid) != nil; pid++ {
		pids = append(pids, pid)
	}
	return pids
}

var compiled sync.Map // *jsonschema.Schema by syscall type

// validate checks an answer against its row's JSON Schema.
func validate(t fatal, row *schema.Syscall, data []byte) {
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
		sch, err := c.Compile("output.json")
		if err != nil {
			t.Fatal(err)
		}
		known, _ = compiled.LoadOrStore(row.Type, sch)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s answers no JSON: %v: %s", row.Type, err, data)
	}
	if err := known.(*jsonschema.Schema).Validate(value); err != nil {
		t.Fatalf("%s answers %s: %v", row.Type, data, err)
	}
}

var _ fatal = (*testing.T)(nil)

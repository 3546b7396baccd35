package capability_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/schema"
)

// family is a process table: 1 spawned 2, which spawned 3; 4 stands alone, 5 was 1's child and has ended.
type family map[int64]*schema.Descriptor

func newFamily() family {
	f := family{}
	for pid, parent := range map[int64]int64{1: 0, 2: 1, 3: 2, 4: 0, 5: 1} {
		f[pid] = &schema.Descriptor{PID: pid, AgentID: fmt.Sprint("agent-", pid), ParentPID: parent, State: "READY", Priority: "NORMAL"}
	}
	f[5].State = "TERMINATED"
	return f
}

func (f family) Process(pid int64) *schema.Descriptor { return f[pid] }

func pools() []string { return []string{"gpu", "cpu"} }

func newRegistry() *capability.Registry { return capability.New(pools(), newFamily()) }

// caller is on whose behalf a call is made.
type caller struct {
	pid   int64
	token *kernel.Token
	tick  int64
}

var operator = caller{}

// agent is a caller with a token of these patterns, and quotas of 10 of each pool.
func agent(pid int64, allowed ...string) caller {
	return caller{pid: pid, token: &kernel.Token{Token: schema.Token{
		PID: pid, AllowedSyscalls: allowed, ResourceQuotas: map[string]float64{"cpu": 10, "gpu": 10},
	}}}
}

// run does what the shell does with a message: it decodes, decides and applies. It fails the test where deciding changes
// the state, where a failed call gives data, or where the answer does not fit its JSON Schema.
func run(t testing.TB, r *capability.Registry, from caller, typ, data string) (string, error) {
	t.Helper()
	call := request(t, from, typ, data)
	before := snapshot(t, r)
	result, err := r.Decide(call)
	if !bytes.Equal(before, snapshot(t, r)) {
		t.Fatalf("%s %s: Decide changed the state", typ, data)
	}
	if err != nil {
		if result.Data != nil {
			t.Fatalf("%s %s: both an error and data %s", typ, data, result.Data)
		}
		return "", err
	}
	validate(t, call.Syscall, result.Data)
	call.Data = bytes.Clone(result.Data)
	apply(r, call)
	return string(result.Data), nil
}

// apply applies a call, and then overwrites what it was decoded from, as the next line of a connection does.
func apply(r *capability.Registry, call *kernel.Call) {
	r.Apply(call)
	for _, raw := range [][]byte{call.Message.Data, call.Data} {
		for i := range raw {
			raw[i] = '#'
		}
	}
}

func request(t testing.TB, from caller, typ, data string) *kernel.Call {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	raw := []byte(data)
	in, fault := row.Input.Decode(raw)
	if fault != nil {
		t.Fatalf("%s %s: %v", typ, data, fault)
	}
	return &kernel.Call{
		Syscall: row, Input: in, PID: from.pid, Token: from.token, Tick: from.tick,
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: raw},
	}
}

func snapshot(t testing.TB, r *capability.Registry) []byte {
	t.Helper()
	var all []byte
	if err := r.Snapshot()(func(chunk []byte) error {
		all = append(append(all, chunk...), '\n')
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

var compiled sync.Map // *jsonschema.Schema by syscall type

// validate checks an answer against its row's JSON Schema.
func validate(t testing.TB, row *schema.Syscall, data []byte) {
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

// must runs a call that has to succeed with this answer.
func must(t testing.TB, r *capability.Registry, from caller, typ, data, want string) {
	t.Helper()
	if got, err := run(t, r, from, typ, data); err != nil || got != want {
		t.Fatalf("%s %s as %d: got %s, %v, want %s", typ, data, from.pid, got, err, want)
	}
}

// refused runs a call that has to fail with this error and change nothing.
func refused(t testing.TB, r *capability.Registry, from caller, typ, data string, class schema.Class, message string) {
	t.Helper()
	before := snapshot(t, r)
	got, err := run(t, r, from, typ, data)
	shown, ok := errors.AsType[*schema.Error](err)
	if !ok || shown.Class != class || shown.Message != message {
		t.Errorf("%s %s as %d: got %s, %v, want class %d: %s", typ, data, from.pid, got, err, class, message)
	}
	if !bytes.Equal(before, snapshot(t, r)) {
		t.Errorf("%s %s as %d: refused, yet the state changed", typ, data, from.pid)
	}
}

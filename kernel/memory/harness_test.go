package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/memory"
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

func process(pid int64, origin string) schema.Descriptor {
	return schema.Descriptor{PID: pid, AgentID: fmt.Sprint("agent-", pid), State: "READY", Priority: "NORMAL", Origin: origin}
}

func newDomain(t rapid.TB, processes table) *memory.Domain {
	t.Helper()
	d, err := memory.New(schema.Value(`{"Root":"https://home.local/"}`), processes)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run does what the shell does with a message: it decodes, decides and applies. It fails the test where deciding changes
// the state, or where the answer does not fit its JSON Schema.
func run(t rapid.TB, d *memory.Domain, pid int64, origin, typ, data string) (string, error) {
	t.Helper()
	call := request(t, pid, origin, typ, data)
	before := snapshot(t, d)
	result, err := d.Decide(call)
	if !bytes.Equal(before, snapshot(t, d)) {
		t.Fatalf("%s %s: Decide changed the state", typ, data)
	}
	if err != nil {
		if result.Data != nil {
			t.Fatalf("%s %s: both an error and data %s", typ, data, result.Data)
		}
		return "", err
	}
	validate(t, call.Syscall, result.Data)
	call.Data = result.Data
	apply(d, call)
	return string(result.Data), nil
}

func request(t rapid.TB, pid int64, origin, typ, data string) *kernel.Call {
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
		Syscall: row, Input: in, PID: pid, Origin: origin,
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: raw},
	}
}

// apply applies a command, and overwrites the request afterwards, as a connection's next line does.
func apply(d *memory.Domain, call *kernel.Call) {
	if call.Syscall.Kind != schema.Command {
		return
	}
	d.Apply(call)
	for i := range call.Message.Data {
		call.Message.Data[i] = '#'
	}
}

func snapshot(t rapid.TB, d *memory.Domain) []byte {
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

// wantError checks the class and the text of an error.
func wantError(t rapid.TB, err error, class schema.Class, message string) {
	t.Helper()
	shown, ok := errors.AsType[*schema.Error](err)
	if !ok || shown.Class != class || shown.Message != message {
		t.Errorf("error %#v, want class %d: %s", err, class, message)
	}
}

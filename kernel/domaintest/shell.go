package domaintest

import (
	"bytes"
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Request decodes a message of the given type. The test adds caller and time.
func Request(t TB, typ, data string) *kernel.Call {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	raw := []byte(data)
	input, err := row.Input().Decode(raw)
	if err != nil {
		t.Fatalf("%s %s: %v", typ, data, err)
	}
	call := kernel.NewCall(kernel.Request{
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: raw}, Syscall: row, Input: input,
	}, kernel.Undecided)
	return &call
}

// Decide has a domain decide a call, and runs what the domain would have a goroutine compute.
func Decide(t TB, d kernel.Domain, call *kernel.Call) (kernel.Result, error) {
	t.Helper()
	before := Snapshot(t, d)
	result, err := d.Decide(call)
	if err == nil && result.Read != nil {
		result, err = result.Read(context.Background())
	}
	for err == nil && result.More != nil {
		result, err = result.More()
	}
	if !bytes.Equal(before, Snapshot(t, d)) {
		t.Fatalf("%s %s: Decide changed the state", call.Message.Type, call.Message.Data)
	}
	switch {
	case err != nil:
		if result.Data != nil {
			t.Fatalf("%s %s: both error %v and data %s", call.Message.Type, call.Message.Data, err, result.Data)
		}
	case result.Wait > 0, call.Intends(): // these answers have no receiver
	default:
		validate(t, call.Syscall, result.Data)
	}
	return result, err
}

// Apply has a domain apply a decided command; a query changes nothing. Then it overwrites the call's memory, as the
// next line of a connection does.
func Apply(d kernel.Domain, call *kernel.Call, data []byte) {
	if call.Syscall.Kind != schema.KindCommand {
		return
	}
	call.Data = bytes.Clone(data)
	d.Apply(call)
	for _, raw := range [][]byte{call.Message.Data, call.Data} {
		for i := range raw {
			raw[i] = '#'
		}
	}
}

// Run decides and applies a call without steps, and returns its answer: "" for an error.
func Run(t TB, d kernel.Domain, call *kernel.Call) (string, error) {
	t.Helper()
	result, err := Decide(t, d, call)
	if err != nil {
		return "", err
	}
	if len(result.Steps) > 0 {
		t.Fatalf("%s %s: steps %v", call.Message.Type, call.Message.Data, result.Steps)
	}
	Apply(d, call, result.Data)
	return string(result.Data), nil
}

// Snapshot returns the state of a domain, its chunks concatenated.
func Snapshot(t TB, d kernel.Domain) []byte {
	t.Helper()
	var chunks [][]byte // not copied: a writer may keep them
	if err := d.Snapshot()(func(chunk []byte) error {
		chunks = append(chunks, chunk)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return bytes.Join(chunks, nil)
}

// Table is a constant process table: descriptors by PID, from 1.
type Table []schema.Descriptor

// Process implements kernel.Processes.
func (t Table) Process(pid int64) *schema.Descriptor {
	if pid < 1 || pid > int64(len(t)) {
		return nil
	}
	return &t[pid-1]
}

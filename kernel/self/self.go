// Package self gives meaning to the syscalls about the kernel itself: whether it answers, what it offers, its end.
package self

import (
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain knows which life of the state directory this is. All else that it answers follows from the call, the syscall table,
// and what can be named.
type Domain struct {
	names  kernel.Names        // nil: nothing can be named
	booted *schema.BootedInput // of the last start; nil before the first
}

// New returns the domain. names is what FileSystem.Resolve asks, nil where nothing can be named.
func New(names kernel.Names) *Domain { return &Domain{names: names} }

// Booted returns what the last start noted of itself, nil where none has. It is not to be changed.
func (d *Domain) Booted() *schema.BootedInput { return d.booted }

// Decide answers the syscalls of schema.Kernel.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.PingInput:
		return reply(append(append([]byte(`{"payload":`), in.Payload...), '}'))
	case *schema.EchoInput:
		return reply(append(schema.AppendString([]byte(`{"echo":`), in.Message), '}'))
	case *schema.ListInput:
		return reply(list(call))
	case *schema.DescribeInput:
		return describe(in.Name, call.Message.Dialect)
	case *schema.ResolveInput:
		return d.resolve(call, in)
	case *schema.ClockGetInput:
		return reply(clock(call.Tick))
	case *schema.ClockAdvanceInput:
		return kernel.Result{Data: clock(call.Tick + in.Ticks), Tick: call.Tick + in.Ticks}, nil
	case *schema.LoginFailedInput, *schema.ThrottledInput, *schema.BootedInput:
		return same(in) // the audit log shows outcomes, so this is where it shows
	case *schema.ShutdownInput:
		return kernel.Result{Data: []byte(`{"success":true}`), Shutdown: true}, nil
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply notes a start. Nothing else changes: the clock is the shell's.
func (d *Domain) Apply(call *kernel.Call) {
	if in, ok := call.Input.(*schema.BootedInput); ok {
		booted := *in
		d.booted = &booted
	}
}

// Snapshot writes what the last start noted, in one chunk.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	booted := d.booted
	return func(write func([]byte) error) error {
		if booted == nil {
			return nil
		}
		chunk, err := schema.Marshal(booted)
		if err != nil {
			return fmt.Errorf("save kernel domain: %w", err)
		}
		return write(chunk)
	}
}

// Reset forgets the last start.
func (d *Domain) Reset() { d.booted = nil }

// Restore takes back what Snapshot wrote.
func (d *Domain) Restore(chunk []byte) error {
	row, _ := schema.Lookup("Kernel.Booted")
	in, fault := row.Input.Decode(chunk)
	if fault != nil {
		return fmt.Errorf("restore kernel domain: %w", fault)
	}
	d.booted = in.(*schema.BootedInput)
	return nil
}

func reply(data []byte) (kernel.Result, error) { return kernel.Result{Data: data}, nil }

// same answers with the input: the audit log shows outcomes, so this is where it shows.
func same(in any) (kernel.Result, error) {
	data, err := schema.Marshal(in)
	if err != nil {
		return kernel.Result{}, err
	}
	return reply(data)
}

// list names what the caller may call.
func list(call *kernel.Call) []byte {
	data := []byte(`{"syscalls":[`)
	for i := range schema.Syscalls() {
		row := &schema.Syscalls()[i]
		if row.AliasOf != "" || row.Internal || kernel.Authorize(nil, call.PID, call.Token, row, call.Tick) != nil {
			continue
		}
		if data[len(data)-1] != '[' {
			data = append(data, ',')
		}
		data = schema.AppendString(data, row.Type)
	}
	return append(data, "]}"...)
}

func clock(tick int64) []byte {
	return append(strconv.AppendInt([]byte(`{"tick":`), tick, 10), '}')
}

func describe(name string, d schema.Dialect) (kernel.Result, error) {
	row, ok := schema.Lookup(name)
	if !ok || row.Internal {
		if like := schema.NearestType(name); like != "" {
			return kernel.Result{}, schema.Errorf(schema.NotFound, "no syscall %s; did you mean %s?", name, like)
		}
		return kernel.Result{}, schema.Errorf(schema.NotFound, "no syscall is named %q: Syscall.List names them all", name)
	}
	return reply(row.AppendDescription(nil, d))
}

func (d *Domain) resolve(call *kernel.Call, in *schema.ResolveInput) (kernel.Result, error) {
	if d.names == nil {
		return kernel.Result{}, schema.Errorf(schema.NotFound, "nothing can be named here")
	}
	base := d.names.Base(call.PID, call.Origin)
	if in.Base != nil {
		base = *in.Base
	}
	name, fault := d.names.Resolve(in.URI, base)
	if fault != nil {
		return kernel.Result{}, fault
	}
	return reply(append(schema.AppendString([]byte(`{"uri":`), name), '}'))
}

// Package self gives meaning to the syscalls about the kernel itself: whether it answers, what it offers, its end.
package self

import (
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain has no state: what it answers follows from the call and the syscall table.
type Domain struct{}

// New returns the domain.
func New() *Domain { return &Domain{} }

// Decide answers the syscalls of schema.Kernel.
func (*Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.PingInput:
		return reply(append(append([]byte(`{"payload":`), in.Payload...), '}'))
	case *schema.EchoInput:
		return reply(append(schema.AppendString([]byte(`{"echo":`), in.Message), '}'))
	case *schema.ListInput:
		return reply(list(call.Caller))
	case *schema.DescribeInput:
		return describe(in.Name, call.Message.Dialect)
	case *schema.ShutdownInput:
		return shutdown(call.Caller)
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply has nothing to change.
func (*Domain) Apply(*kernel.Call) {}

func reply(data []byte) (kernel.Result, error) { return kernel.Result{Data: data}, nil }

// list names what the caller may call.
func list(caller kernel.Caller) []byte {
	data := []byte(`{"syscalls":[`)
	for _, row := range schema.Syscalls() {
		if row.AliasOf != "" || !allowed(caller, &row) {
			continue
		}
		if data[len(data)-1] != '[' {
			data = append(data, ',')
		}
		data = schema.AppendString(data, row.Type)
	}
	return append(data, "]}"...)
}

// allowed is the authority that needs no token.
func allowed(caller kernel.Caller, row *schema.Syscall) bool {
	return caller.PID == kernel.Operator || row.Grant == schema.Everyone
}

func describe(name string, d schema.Dialect) (kernel.Result, error) {
	row, ok := schema.Lookup(name)
	if !ok {
		return kernel.Result{}, schema.Errorf(schema.NotFound, "no syscall is named %q: Syscall.List names them all", name)
	}
	return reply(row.AppendDescription(nil, d))
}

func shutdown(caller kernel.Caller) (kernel.Result, error) {
	if caller.PID != kernel.Operator {
		return kernel.Result{}, schema.Errorf(schema.Forbidden, "pid %d may not call Syscall.Shutdown: only the operator ends the kernel", caller.PID)
	}
	return kernel.Result{Data: []byte(`{"success":true}`), Shutdown: true}, nil
}

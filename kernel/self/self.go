// Package self gives meaning to the syscalls about the kernel itself: whether it answers, what it offers, its end.
package self

import (
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain knows which life of the state directory this is, and which syscalls were registered. All else that it answers follows from
// the call, the syscall table, and what can be named.
type Domain struct {
	kernel.Handlers
	names  kernel.Names        // nil: nothing can be named
	booted *schema.BootedInput // of the last start; nil before the first

	registry *registry // what was registered; immutable
	view     Registry
}

// New returns the domain. names is what FileSystem.Resolve asks, nil where nothing can be named.
func New(names kernel.Names) *Domain {
	d := &Domain{names: names}
	d.Handlers = kernel.Bind(schema.Kernel,
		kernel.Query(schema.SyscallPing, ping),
		kernel.Command(schema.SyscallEcho, echo, nil),
		kernel.Command(schema.SyscallAuthenticate, authenticate, nil),
		kernel.Query(schema.SyscallList, d.list),
		kernel.Query(schema.SyscallDescribe, d.describe),
		kernel.Command(schema.SyscallRegister, d.register, d.applyRegister),
		kernel.Command(schema.SyscallUnregister, d.unregister, d.applyUnregister),
		kernel.Command(schema.SyscallComplete, complete, nil),
		kernel.Effect(schema.SyscallInvoke, d.invoke),
		kernel.Step(schema.SyscallInvoke.End, kernel.End, nil),
		kernel.Command(schema.SyscallShutdown, shutdown, nil),
		kernel.Query(schema.FileSystemResolve, d.resolve),
		kernel.Query(schema.ClockGet, clock),
		kernel.Command(schema.ClockAdvance, advance, nil),
		// The audit log shows outcomes, so notes answer with what they note.
		kernel.Step(schema.KernelLoginFailed, same[schema.LoginFailedInput], nil),
		kernel.Step(schema.KernelThrottled, same[schema.ThrottledInput], nil),
		kernel.Step(schema.KernelBooted, same[schema.BootedInput], d.noteStart),
	)
	d.Reset()
	d.Publish()
	return d
}

// Booted returns what the last start noted of itself, nil where none has. It is not to be changed.
func (d *Domain) Booted() *schema.BootedInput { return d.booted }

func ping(_ *kernel.Call, in *schema.PingInput) (schema.PingOutput, error) {
	return schema.PingOutput(*in), nil
}

func echo(_ *kernel.Call, in *schema.EchoInput) (schema.EchoOutput, error) {
	return schema.EchoOutput{Echo: in.Message}, nil
}

// authenticate refuses what comes after the prologue, in which the transport has seen to it (PROTOCOL 4).
func authenticate(*kernel.Call, *schema.AuthenticateInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{}, fault.AuthAgain.New("already authenticated").WithFix("open another connection to be somebody else")
}

// list names what the caller may call.
func (d *Domain) list(call *kernel.Call, _ *schema.ListInput) (schema.ListOutput, error) {
	var out schema.ListOutput
	for _, row := range schema.Syscalls() {
		asks := row
		if row == schema.SyscallComplete.Row() { // which is of use to those alone who may register
			asks = schema.SyscallRegister.Row()
		}
		if !row.Internal && row != schema.SyscallAuthenticate.Row() && kernel.Authorize(nil, call.PID, call.Token, asks, call.Tick) == nil {
			out.Syscalls = append(out.Syscalls, row.Type)
		}
	}
	for name := range d.registry.origins[call.Origin] {
		if kernel.AuthorizeRegistered(nil, call.PID, call.Token, name, call.Tick) == nil {
			out.Syscalls = append(out.Syscalls, name)
		}
	}
	slices.Sort(out.Syscalls)
	return out, nil
}

func (d *Domain) describe(call *kernel.Call, in *schema.DescribeInput) (schema.DescribeOutput, error) {
	row, ok := schema.Lookup(in.Name)
	if r := d.registry.of(call.Origin, in.Name); !ok && r != nil {
		return r.Describe(call.Message.Dialect), nil
	}
	if !ok || row.Internal {
		if like := schema.NearestType(in.Name); like != "" {
			return schema.DescribeOutput{}, fault.SyscallNotFound.New("no syscall %s; did you mean %s?", in.Name, like)
		}
		return schema.DescribeOutput{}, fault.SyscallNotFound.New("no syscall is named %q: Syscall.List names them all", in.Name)
	}
	return row.Describe(call.Message.Dialect), nil
}

func shutdown(call *kernel.Call, _ *schema.ShutdownInput) (schema.SuccessOutput, error) {
	call.Shutdown()
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) resolve(call *kernel.Call, in *schema.ResolveInput) (schema.ResolveOutput, error) {
	if d.names == nil {
		return schema.ResolveOutput{}, fault.NameNotFound.New("nothing can be named here")
	}
	base := d.names.Base(call.PID, call.Origin)
	if in.Base != nil {
		base = *in.Base
	}
	name, err := d.names.Resolve(in.URI, base)
	if err != nil {
		return schema.ResolveOutput{}, err
	}
	return schema.ResolveOutput{URI: name}, nil
}

func clock(call *kernel.Call, _ *schema.ClockGetInput) (schema.ClockOutput, error) {
	return schema.ClockOutput{Tick: call.Tick}, nil
}

func advance(call *kernel.Call, in *schema.ClockAdvanceInput) (schema.ClockOutput, error) {
	tick := call.Tick + in.Ticks
	call.Advance(tick) // the clock is the shell's
	return schema.ClockOutput{Tick: tick}, nil
}

func same[T any](_ *kernel.Call, in *T) (T, error) { return *in, nil }

func (d *Domain) noteStart(_ *kernel.Entry, in *schema.BootedInput) {
	booted := *in
	d.booted = &booted
}

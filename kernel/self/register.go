package self

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsonschema"
)

// Bounds of registrations (PROTOCOL 11).
const (
	MaxRegistered = 1000     // syscalls of an origin
	maxSchemas    = 16 << 10 // bytes of a registration's two schemas
	maxCode       = 8 << 20  // bytes of all code of an origin
	maxEachMinute = 10       // registrations of an agent
)

// register answers Syscall.Register. The connection records what it provides, and has checked its code.
func (d *Domain) register(call *kernel.Call, in *schema.RegisterInput) (out schema.RegisterOutput, _ error) {
	r, err := registration(in)
	if err != nil {
		return out, err
	}
	for _, one := range []struct {
		name string
		text schema.Value
	}{{"input", r.Input}, {"output", r.Output}} {
		if _, wrong := jsonschema.Compile(one.text); wrong != nil {
			return out, kernel.Invalid(one.name, "is no JSON Schema that can be checked: %s", strings.TrimSpace(fault.Clip(wrong.At)+" "+wrong.Why))
		}
	}
	if r.Path != nil && call.PID != kernel.Operator {
		return out, fault.CapabilityOperatorOnly.New("pid %d may not register a path: only the operator may", call.PID).
			WithFix("register code, or provider connection")
	}
	if call.Refused != nil {
		return out, call.Refused
	}
	if old := d.registry.of(call.Origin, r.Name); old != nil {
		if err := owns(call, old); err != nil && !schema.UserSpace(r.Name) { // the gate checks who may provide a path
			return out, err
		}
		if !alike(old, r) {
			return out, fault.SyscallTaken.New("%s is registered already, as something else", r.Name).With("syscall", r.Name)
		}
	} else if schema.UserSpace(r.Name) && call.PID != kernel.Operator {
		return out, fault.SyscallNotFound.New("%s is not registered: the operator registers it before pid %d can provide it", r.Name, call.PID)
	} else if len(d.registry.origins[call.Origin]) >= MaxRegistered {
		return out, fault.SyscallTooMany.New("%d syscalls are registered in this origin, which is the limit", MaxRegistered).
			WithFix("unregister what is not used any more")
	} else if d.registry.code(call.Origin)+len(text(r.Code)) > maxCode {
		return out, fault.SyscallTooMany.New("the code that is registered in this origin may have %d bytes", maxCode).
			WithFix("unregister what is not used any more, or register a path")
	}
	if len(d.registry.since(call.PID, call.Time)) >= maxEachMinute {
		return out, fault.SyscallTooOften.New("pid %d has registered %d times in the last minute, and may not more often", call.PID, maxEachMinute).
			WithFix("wait a minute")
	}
	call.Announce(kernel.News{Callable: true})
	return schema.RegisterOutput{Registered: true, Name: r.Name, Introspection: r.Describe(call.Message.Dialect).AppendJSON(nil)}, nil
}

// registration is the registration that is asked for, without an owner.
func registration(in *schema.RegisterInput) (*schema.Registration, *fault.Fault) {
	entry, path := schema.MCPEntry(in.Name)
	path = path && strings.HasPrefix(in.Name, entry)
	switch {
	case !path && !schema.ValidType(in.Name):
		return nil, kernel.Invalid("name", "must be of the form Domain.Action, such as Stripe.Charge, or a path such as mcp/fs/read")
	case path && in.Provider == nil:
		return nil, kernel.Invalid("provider", "is required: an agent provides a path")
	case !path && !schema.Registrable(in.Name):
		return nil, kernel.Invalid("name", "must be in a domain that is not the kernel's, such as Stripe.Charge")
	case !path && schema.NearestType(in.Name) != "":
		return nil, kernel.Invalid("name", "is too much like %s", schema.NearestType(in.Name))
	case (in.Kind == nil) == (in.Type == nil):
		return nil, kernel.Invalid("kind", "is required, command or query; type is accepted in its place, but not both")
	case given(in.Provider)+given(in.Path)+given(in.Code) != 1:
		return nil, kernel.Invalid("provider", "code or path is required, and one of the three is given")
	}
	if in.Path != nil {
		if _, ok := schema.ToolPath(*in.Path); !ok {
			return nil, kernel.Invalid("path", "must be the plain path of a tool below root, such as os/tools/sum")
		}
	}
	input, err := either("input", in.Input, in.InputSchema)
	if err != nil {
		return nil, err
	}
	output, err := either("output", in.Output, in.OutputSchema)
	if err != nil {
		return nil, err
	}
	switch {
	case input == nil:
		return nil, kernel.Invalid("input", "is required: a JSON Schema, where {} takes any data")
	case len(input)+len(output) > maxSchemas:
		return nil, kernel.Invalid("input", "is too long: with output it may have %d bytes", maxSchemas)
	case output == nil:
		output = schema.Value(`{}`)
	}
	return &schema.Registration{
		Name: in.Name, Kind: text(cmp.Or(in.Kind, in.Type)), Input: input, Output: output, Description: text(in.Description), Path: in.Path, Code: in.Code,
	}, nil
}

// either returns the one of two members that is given, or nil. It must be a JSON Schema.
func either(name string, one, other schema.Value) (schema.Value, *fault.Fault) {
	switch {
	case one != nil && other != nil:
		return nil, kernel.Invalid(name, "is given twice: as %s and as %[1]sSchema", name)
	case one == nil && other == nil:
		return nil, nil
	case one == nil:
		one = other
	}
	switch {
	case one[0] != '{':
		return nil, kernel.Invalid(name, "must be a JSON Schema: an object")
	case !schema.ValidWithin(one, schema.MaxKeptDepth):
		return nil, kernel.Invalid(name, "must not be nested deeper than %d levels", schema.MaxKeptDepth)
	}
	return one, nil
}

// given counts a member that is present.
func given(s *string) int {
	if s == nil {
		return 0
	}
	return 1
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// alike reports whether two registrations are equal apart from their owners.
func alike(a, b *schema.Registration) bool {
	return a.Kind == b.Kind && bytes.Equal(a.Input, b.Input) && bytes.Equal(a.Output, b.Output) &&
		a.Description == b.Description && text(a.Path) == text(b.Path) && text(a.Code) == text(b.Code)
}

// owns refuses what only the owner of a registered syscall, and the operator, may do.
func owns(call *kernel.Call, r *schema.Registration) *fault.Fault {
	if call.PID == kernel.Operator || call.PID == r.Owner {
		return nil
	}
	return fault.CapabilityNotYours.New("pid %d may not change %s: it belongs to pid %d", call.PID, r.Name, r.Owner).WithFix("take another name")
}

func (d *Domain) applyRegister(e *kernel.Entry, in *schema.RegisterInput) {
	d.registry = d.registry.counted(e.PID, e.Time)
	if d.registry.of(e.Origin, in.Name) != nil {
		return
	}
	r, err := registration(in)
	if err != nil {
		panic("apply: a registration of the journal: " + err.Error())
	}
	r.Owner = e.PID
	d.registry = d.registry.changed(e.Origin, r.Name, r.Own())
}

// unregister answers Syscall.Unregister. Calls in flight continue.
func (d *Domain) unregister(call *kernel.Call, in *schema.UnregisterInput) (out schema.SuccessOutput, _ error) {
	r := d.registry.of(call.Origin, in.Name)
	if r == nil {
		return out, fault.SyscallNotFound.New("no syscall %q is registered", in.Name).With("syscall", in.Name)
	}
	if err := owns(call, r); err != nil {
		return out, err
	}
	call.Announce(kernel.News{Callable: true})
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyUnregister(e *kernel.Entry, in *schema.UnregisterInput) {
	d.registry = d.registry.changed(e.Origin, in.Name, nil)
}

// complete answers Syscall.Complete, which the connection has carried out.
func complete(call *kernel.Call, _ *schema.CompleteInput) (out schema.SuccessOutput, _ error) {
	if call.Refused != nil {
		return out, call.Refused
	}
	return schema.SuccessOutput{Success: true}, nil
}

// progress answers a Syscall.Progress that came by no connection, which would have handled it.
func progress(_ *kernel.Call, in *schema.ProgressInput) (out schema.SuccessOutput, _ error) {
	return out, schema.NoCall(in.CallID)
}

// invoke begins the call of a registered syscall.
func (d *Domain) invoke(call *kernel.Call, in *schema.InvokeInput) (*kernel.Invocation, error) {
	r := d.registry.of(call.Origin, in.Name)
	switch {
	case r == nil:
		return nil, fault.WireUnknownSyscall.New("Unsupported type %s: register a handler and retry (Syscall.List names what there is)", in.Name).With("syscall", in.Name)
	case r.Kind != in.Kind:
		return nil, fault.WireSchema.New("Schema validation failed: %s is a %s, not a %s", r.Name, r.Kind, in.Kind).At("kind")
	}
	return &kernel.Invocation{Origin: call.Origin, Registration: r, Data: slices.Clone(in.Data), Describe: in.Describe != nil && *in.Describe}, nil
}

// Package self implements the syscalls about the kernel itself, such as ping, descriptions, shutdown.
package self

import (
	"bytes"
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain keeps the record of the last start, and the registered syscalls. Everything else that it answers follows
// from the call, the syscall table, and the name space.
type Domain struct {
	kernel.Handlers
	names  kernel.Names        // nil: there are no names
	booted *schema.BootedInput // of the last start; nil before the first one

	policy   func() schema.PolicyShowOutput // what is loaded
	approved ApprovedTool
	cluster  Cluster        // nil: the kernel is in none
	registry *registrations // immutable
	view     Registry
}

// New returns the domain. FileSystem.Resolve uses names; nil if there are none.
func New(names kernel.Names) *Domain {
	d := &Domain{names: names, approved: func(*kernel.Call, *schema.ToolUseInput) {}, policy: func() (none schema.PolicyShowOutput) {
		none.Files, none.Rules = []string{}, []schema.PolicyRule{}
		return none
	}}
	d.Handlers = kernel.Bind(schema.Kernel,
		kernel.Query(schema.SyscallPing, ping),
		kernel.Command(schema.SyscallEcho, echo, nil),
		kernel.Command(schema.SyscallAuthenticate, authenticate, nil),
		kernel.Query(schema.SyscallList, d.list),
		kernel.Query(schema.SyscallDescribe, d.describe),
		kernel.Command(schema.SyscallRegister, d.register, d.applyRegister),
		kernel.Command(schema.SyscallUnregister, d.unregister, d.applyUnregister),
		kernel.Command(schema.SyscallComplete, complete, nil),
		kernel.Command(schema.SyscallProgress, progress, nil),
		kernel.Effect(schema.SyscallInvoke, d.invoke),
		kernel.Step(schema.SyscallInvoke.End, kernel.End, nil),
		kernel.Command(schema.SyscallShutdown, shutdown, nil),
		kernel.Query(schema.FileSystemResolve, d.resolve),
		kernel.Command(schema.HostToolUse, d.toolUse, nil),
		kernel.Effect(schema.ProgramExec, exec),
		kernel.Step(schema.ProgramExec.End, kernel.End, nil),
		kernel.Effect(schema.PolicyReload, reload),
		kernel.Step(schema.PolicyReload.End, kernel.End, nil),
		kernel.Query(schema.PolicyShow, d.showPolicy),
		kernel.Step(schema.PolicyLoaded, same[schema.PolicyLoadedInput], nil),
		kernel.Query(schema.ClusterStatus, d.clusterStatus),
		kernel.Query(schema.ClusterAsk, d.clusterAsk),
		kernel.Query(schema.ClusterQueue, d.clusterQueue),
		kernel.Effect(schema.ClusterDrop, d.clusterDrop),
		kernel.Step(schema.ClusterDrop.End, kernel.End, nil),
		kernel.Query(schema.ClockGet, clock),
		kernel.Command(schema.ClockAdvance, advance, nil),
		// The audit log shows outcomes, so notes answer with what they record.
		kernel.Step(schema.KernelLoginFailed, same[schema.LoginFailedInput], nil),
		kernel.Step(schema.KernelThrottled, same[schema.ThrottledInput], nil),
		kernel.Step(schema.ClusterRefused, same[schema.RefusedInput], nil),
		kernel.Step(schema.KernelBooted, same[schema.BootedInput], d.noteStart),
		kernel.Step(schema.KernelTakeOver, same[schema.TakeOverInput], d.noteTakeOver),
	)
	d.Reset()
	d.Publish()
	return d
}

// Booted returns what the last start recorded, nil if none has. It must not be changed.
func (d *Domain) Booted() *schema.BootedInput { return d.booted }

func ping(_ *kernel.Call, in *schema.PingInput) (schema.PingOutput, error) {
	return schema.PingOutput(*in), nil
}

func echo(_ *kernel.Call, in *schema.EchoInput) (schema.EchoOutput, error) {
	return schema.EchoOutput{Echo: in.Message}, nil
}

// authenticate refuses the prologue's message after the prologue, which the transport has handled (PROTOCOL 4).
func authenticate(*kernel.Call, *schema.AuthenticateInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{}, fault.AuthAgain.New("already authenticated").WithFix("open another connection to log in as someone else")
}

// list lists what the caller may call. Changes to it are known to the capability domain first.
func (d *Domain) list(call *kernel.Call, in *schema.ListInput) (schema.ListOutput, error) {
	if in.Follow != nil && *in.Follow {
		call.Follow(schema.CapabilityWatch.With(&schema.ListWatchInput{}))
	}
	out := kernel.Callable(d.registry.names(call.Origin), call.PID, call.Token, call.Tick)
	out.Schemas = schema.Fingerprint()
	return out, nil
}

func (d *Domain) describe(call *kernel.Call, in *schema.DescribeInput) (schema.DescribeOutput, error) {
	row, ok := schema.Lookup(in.Name)
	if r := d.registry.of(call.Origin, in.Name); !ok && r != nil {
		return r.Describe(call.Message.Dialect), nil
	}
	if !ok || row.Internal {
		if like := schema.NearestType(in.Name); like != "" {
			return schema.DescribeOutput{}, fault.SyscallNotFound.New("no syscall %s; did you mean %s?", in.Name, like).With("syscall", fault.Clip(in.Name))
		}
		return schema.DescribeOutput{}, fault.SyscallNotFound.New("no syscall is named %q: Syscall.List names them all", in.Name).With("syscall", fault.Clip(in.Name))
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

// ApprovedTool is told of the use of a tool that an approval lets through. It runs in the domain's turn.
type ApprovedTool func(call *kernel.Call, in *schema.ToolUseInput)

// SeeApproved sets what is told of approved uses of tools. Call it before the domain decides anything.
func (d *Domain) SeeApproved(approved ApprovedTool) { d.approved = approved }

// toolUse answers for a tool that the gate has allowed.
func (d *Domain) toolUse(call *kernel.Call, in *schema.ToolUseInput) (schema.ToolUseOutput, error) {
	if call.Approval != nil {
		d.approved(call, in)
	}
	return schema.ToolUseOutput{Decision: schema.ToolAllow, Reason: "it is granted"}, nil
}

// exec answers Program.Exec: what decides is the policy's.
func exec(_ *kernel.Call, in *schema.ProgramExecInput) (*schema.ProgramExecInput, error) {
	return in, nil
}

// SeePolicy sets what Policy.Show answers. Call it before the domain decides anything.
func (d *Domain) SeePolicy(policy func() schema.PolicyShowOutput) { d.policy = policy }

func (d *Domain) showPolicy(*kernel.Call, *schema.PolicyShowInput) (schema.PolicyShowOutput, error) {
	return d.policy(), nil
}

// reload begins Policy.Reload: the files are outside the kernel.
func reload(_ *kernel.Call, in *schema.PolicyReloadInput) (*schema.PolicyReloadInput, error) {
	return in, nil
}

func clock(call *kernel.Call, _ *schema.ClockGetInput) (schema.ClockOutput, error) {
	return schema.ClockOutput{Tick: call.Tick}, nil
}

func advance(call *kernel.Call, in *schema.ClockAdvanceInput) (schema.ClockOutput, error) {
	tick := call.Tick + in.Ticks
	call.Advance(tick) // the shell moves the clock
	return schema.ClockOutput{Tick: tick}, nil
}

func same[T any](_ *kernel.Call, in *T) (T, error) { return *in, nil }

func (d *Domain) noteStart(_ *kernel.Entry, in *schema.BootedInput) {
	booted := *in
	d.booted = &booted
}

// noteTakeOver records the host that leads from now on, so that its next start is not taken for that of a copy.
func (d *Domain) noteTakeOver(_ *kernel.Entry, in *schema.TakeOverInput) {
	booted := schema.BootedInput{}
	if d.booted != nil {
		booted = *d.booted
	}
	booted.Epoch, booted.HostKey, booted.Machine, booted.Directory, booted.Epochs = in.Epoch, in.HostKey, in.Machine, in.Directory, in.Epochs
	d.booted = &booted
}

// Cluster is what the shell knows of other kernels. Its methods are safe for concurrent use.
type Cluster interface {
	Status() schema.ClusterStatusOutput
	// Queue lists the messages to other kernels that have no outcome.
	Queue() schema.ClusterQueueOutput
	// Ask makes a query at another kernel. It returns the answer, and its entry there.
	Ask(ctx context.Context, kernel, typ string, data []byte) (answer schema.Value, seq int64, err error)
}

// SeeCluster sets what Cluster.Status answers. Call it before the domain decides anything.
func (d *Domain) SeeCluster(c Cluster) { d.cluster = c }

func (d *Domain) clusterStatus(*kernel.Call, *schema.ClusterStatusInput) (schema.ClusterStatusOutput, error) {
	if d.cluster == nil {
		return schema.ClusterStatusOutput{}, errNoCluster()
	}
	out := d.cluster.Status()
	if d.booted != nil {
		out.Epoch = d.booted.Epoch
	}
	return out, nil
}

func (d *Domain) clusterQueue(*kernel.Call, *schema.ClusterQueueInput) (schema.ClusterQueueOutput, error) {
	if d.cluster == nil {
		return schema.ClusterQueueOutput{}, errNoCluster()
	}
	return d.cluster.Queue(), nil
}

// clusterDrop begins Cluster.Drop: what is being sent is outside the kernel.
func (d *Domain) clusterDrop(_ *kernel.Call, in *schema.ClusterDropInput) (*schema.ClusterDropInput, error) {
	if d.cluster == nil {
		return nil, errNoCluster()
	}
	return in, nil
}

// clusterAsk makes a query at another kernel, on a goroutine.
func (d *Domain) clusterAsk(call *kernel.Call, in *schema.ClusterAskInput) (schema.ClusterAskOutput, error) {
	if d.cluster == nil {
		return schema.ClusterAskOutput{}, errNoCluster()
	}
	cluster, kernelName, typ, data := d.cluster, in.Kernel, in.Type, bytes.Clone(in.Data)
	if data == nil {
		data = []byte("{}")
	}
	kernel.Compute(call, func(ctx context.Context) (schema.ClusterAskOutput, error) {
		answer, seq, err := cluster.Ask(ctx, kernelName, typ, data)
		return schema.ClusterAskOutput{Kernel: kernelName, Seq: seq, Data: answer}, err
	})
	return schema.ClusterAskOutput{}, nil
}

func errNoCluster() *fault.Fault {
	return fault.ClusterOff.New("this kernel is in no cluster: set cluster.name and cluster.bus in its configuration")
}

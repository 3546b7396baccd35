// Package process keeps the process table (PROTOCOL 6).
package process

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// States of a process (PROTOCOL 6). An agent without a program is ready until it ends.
const (
	ready      = "READY"
	terminated = "TERMINATED"
)

// Domain is the state machine of the processes.
type Domain struct {
	kernel.Handlers
	pools []string // names of the resources that a default grant covers, ascending

	tokens   kernel.Tokens // see See
	registry kernel.Registry
	budgets  kernel.Budgets // likewise

	table    *table
	prepared *schema.ProcessPrepareInput // grant of the next process, after the step of its spawn; else nil
	contexts *contexts
	view     *Processes
	events   events
	abroad   abroad
	kernels  Kernels // nil: there are no others
	explains atomic.Pointer[Explainer]
}

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
	_ kernel.Repeater  = (*Domain)(nil)
)

// New returns an empty process table. A default grant covers the given pools, the resources of the configuration.
func New(pools []string) *Domain {
	d := &Domain{
		pools: slices.Compact(slices.Sorted(slices.Values(pools))),
		view:  &Processes{},
	}
	d.Handlers = kernel.Bind(schema.Process,
		kernel.PartialEffect(schema.SyscallSpawn, d.spawn, d.applySpawn),
		kernel.Step(schema.SyscallSpawn.End, kernel.End, d.applySpawnedAbroad),
		kernel.PartialEffect(schema.SyscallTerminate, d.terminate, d.applyTerminate),
		kernel.Step(schema.SyscallTerminate.End, kernel.End, d.applyEndedAbroad),
		kernel.Step(schema.ProcessSettle, done[schema.ErrandSettled], d.applySettle),
		kernel.Query(schema.ProcessList, d.list),
		kernel.Query(schema.ProcessGet, d.get),
		kernel.Command(schema.ProcessAttach, d.attach, d.applyAttach),
		kernel.Command(schema.ProcessPause, d.pausing(true), d.applyPausing(true)),
		kernel.Command(schema.ProcessResume, d.pausing(false), d.applyPausing(false)),
		kernel.Command(schema.ProcessRestoreFiles, d.restoreFiles, nil),
		kernel.Query(schema.ProcessExplain, d.explain),
		kernel.Query(schema.ProcessSubscribe, d.subscribe),
		kernel.Question(schema.ProcessWatch, d.watch),
		kernel.Step(schema.ProcessPrepare, done[schema.ProcessPrepareInput], d.applyPrepare),
		kernel.Step(schema.ProcessExit, d.exit, d.applyExit),
		kernel.Step(schema.ProcessNoteStart, d.noteStart, d.applyNoteStart),
		kernel.Step(schema.ProcessNoteEnd, d.noteEnd, d.applyNoteEnd),
		kernel.Effect(schema.KernelIngest, d.ingest),
		kernel.Step(schema.KernelIngest.End, d.adopt, d.applyAdopt),
		kernel.Effect(schema.FileSystemHydrate, d.hydrate),
		kernel.Step(schema.FileSystemHydrate.End, kernel.End, nil),
		kernel.Effect(schema.SyscallCall, d.tool),
		kernel.Step(schema.SyscallCall.End, called, nil),
	)
	d.Reset()
	d.Publish()
	return d
}

// See sets the views of tokens, of registered syscalls and of budgets, which are made after the domain. Without the
// first no process can be attached to with capabilities, without the second no registered syscall can be granted to a
// child, without the third no process can be attached to with a budget.
func (d *Domain) See(tokens kernel.Tokens, registry kernel.Registry, budgets kernel.Budgets) {
	d.tokens, d.registry, d.budgets = tokens, registry, budgets
}

// Processes returns the view of the table. It is complete after the first Publish following a change.
func (d *Domain) Processes() *Processes { return d.view }

// Alive reports whether pid has not ended; unlike the view it is up to date. Only the owner of the domain may call
// it.
func (d *Domain) Alive(pid int64) bool { return d.table.alive(pid) }

// Living calls see for each process that has not ended, by ascending PID. Only the owner of the domain may call it.
func (d *Domain) Living(see func(*schema.Descriptor)) {
	d.table.processes.Scan(func(_ int64, p *schema.Descriptor) bool {
		if p.State != terminated {
			see(p)
		}
		return true
	})
}

// Each calls see for each process that is remembered, by ascending PID. Only the owner of the domain may call it.
func (d *Domain) Each(see func(*schema.Descriptor)) {
	d.table.processes.Scan(func(_ int64, p *schema.Descriptor) bool {
		see(p)
		return true
	})
}

// Known reports whether more than the PID is kept of pid. Only the owner of the domain may call it.
func (d *Domain) Known(pid int64) bool { return d.table.known(pid) }

// Reset implements kernel.Domain.
func (d *Domain) Reset() {
	d.table = newTable()
	d.prepared = nil
	d.contexts = newContexts()
	d.events = events{}
	d.abroad = newAbroad()
}

// listedAtOnce is how many processes Process.List reads on the actor. More are read from a copy on a goroutine.
const listedAtOnce = 128

// list answers Process.List with all matching processes, which may exceed a line: PROTOCOL gives it no cursor.
func (d *Domain) list(call *kernel.Call, in *schema.ProcessListInput) (schema.ProcessListOutput, error) {
	if d.table.processes.Len() <= listedAtOnce {
		return listed(context.Background(), d.table.processes, call, in)
	}
	processes := d.table.processes.Copy()
	kernel.Compute(call, func(ctx context.Context) (schema.ProcessListOutput, error) { return listed(ctx, processes, call, in) })
	return schema.ProcessListOutput{}, nil
}

// listed are the processes that a call may see and selects, without forgotten ones.
func listed(ctx context.Context, processes *btree.Map[int64, *schema.Descriptor], call *kernel.Call, in *schema.ProcessListInput) (out schema.ProcessListOutput, err error) {
	processes.Scan(func(_ int64, p *schema.Descriptor) bool {
		if (in.State == nil || *in.State == p.State) && (call.PID == kernel.Operator || p.Origin == call.Origin) {
			out.Processes = append(out.Processes, *p)
		}
		err = ctx.Err()
		return err == nil
	})
	return out, err
}

// get answers Process.Get.
func (d *Domain) get(call *kernel.Call, in *schema.ProcessGetInput) (schema.Descriptor, error) {
	p := kernel.Visible(d.table, call, in.PID)
	if p == nil {
		return schema.Descriptor{}, kernel.NoProcess(in.PID)
	}
	return *p, nil
}

// done answers a step that cannot fail.
func done[In any](*kernel.Call, *In) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

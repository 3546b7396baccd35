// Package process keeps the process table: who was spawned by whom, in which state (PROTOCOL 6).
package process

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// States of a process (PROTOCOL 6). An agent without a program runs nowhere: it is ready from its first day
// to its last.
const (
	ready      = "READY"
	terminated = "TERMINATED"
)

// Domain is the state machine of the processes.
type Domain struct {
	pools []string // names of the resources that a default grant covers, ascending
	form  *schema.Type

	spawned *schema.Type // what is read back of a spawn

	table    *table
	prepared *schema.ProcessPrepareInput // what the next process is granted: a spawn has got as far as that; else nil
	contexts *contexts
	view     *Processes
	events   events
}

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
	_ kernel.Repeater  = (*Domain)(nil)
)

// New returns an empty process table. A process of which nobody says what it may do is granted of the given pools, the
// resources of the configuration.
func New(pools []string) *Domain {
	d := &Domain{
		pools: slices.Compact(slices.Sorted(slices.Values(pools))),
		form:  schema.TypeOf[chunk](),

		spawned: schema.TypeOf[schema.SpawnOutput](),
		view:    &Processes{},
	}
	d.Reset()
	d.Publish()
	return d
}

// Processes returns the view that others have of the table. It is complete from the first Publish after a change on.
func (d *Domain) Processes() *Processes { return d.view }

// Alive reports whether pid has not ended, at once, unlike the view. It belongs to whoever may call Decide.
func (d *Domain) Alive(pid int64) bool { return d.table.alive(pid) }

// Living calls see for each process that has not ended, by ascending PID. It belongs to whoever may call Decide.
func (d *Domain) Living(see func(*schema.Descriptor)) {
	d.table.processes.Scan(func(_ int64, p *schema.Descriptor) bool {
		if p.State != terminated {
			see(p)
		}
		return true
	})
}

// Known reports whether anything but its PID is remembered of pid. It belongs to whoever may call Decide.
func (d *Domain) Known(pid int64) bool { return d.table.known(pid) }

// Reset implements kernel.Domain.
func (d *Domain) Reset() {
	d.table = newTable()
	d.prepared = nil
	d.contexts = newContexts()
	d.events = events{}
}

// Decide answers the syscalls of schema.Process.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.SpawnInput:
		return d.spawn(call, in)
	case *schema.TerminateInput:
		return d.terminate(call, in)
	case *schema.ProcessListInput:
		return d.list(call, in)
	case *schema.ProcessGetInput:
		return d.get(call, in.PID)
	case *schema.ProcessSubscribeInput:
		return d.subscribe(call, in)
	case *schema.ProcessWatchInput:
		return d.look(in)
	case *schema.ProcessPrepareInput:
		return done(), nil
	case *schema.ProcessExitInput:
		result := done()
		result.Effect = d.stop(in.PIDs)
		return result, nil
	case *schema.ProcessStartInput:
		return d.noteStart(in)
	case *schema.ProcessEndInput:
		return d.noteEnd(in), nil
	case *schema.IngestInput:
		return d.ingest(call, in)
	case *schema.HydrateInput:
		return d.hydrate(call, in)
	case *schema.CallInput:
		return d.tool(call, in)
	case *schema.EffectEnd:
		return d.ended(call, in)
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply changes the table. Syscall.Terminate has nothing to change itself: its step Process.Exit did.
func (d *Domain) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.ProcessPrepareInput:
		d.prepared = in
	case *schema.SpawnInput:
		d.born(call, in)
	case *schema.ProcessExitInput:
		for _, pid := range in.PIDs {
			d.exit(call, pid)
		}
	case *schema.ProcessStartInput:
		d.started(in)
	case *schema.ProcessEndInput:
		d.stopped(call.Tick, in)
	case *schema.EffectEnd:
		if in.Type == "Kernel.Ingest" {
			d.adopted(call, in)
		}
	}
	d.happened(call)
}

// list answers Process.List with all there is, which may be more than a line has room for: PROTOCOL gives it no cursor.
func (d *Domain) list(call *kernel.Call, in *schema.ProcessListInput) (kernel.Result, error) {
	out := schema.ProcessListOutput{Processes: []schema.Descriptor{}}
	d.table.processes.Scan(func(pid int64, p *schema.Descriptor) bool {
		if (in.State == nil || *in.State == p.State) && kernel.Visible(d.table, call, pid) != nil {
			out.Processes = append(out.Processes, *p)
		}
		return true
	})
	return answer(&out)
}

// get answers Process.Get.
func (d *Domain) get(call *kernel.Call, pid int64) (kernel.Result, error) {
	p := kernel.Visible(d.table, call, pid)
	if p == nil {
		return kernel.Result{}, unknown(pid)
	}
	return answer(p)
}

func unknown(pid int64) *schema.Error {
	return schema.Errorf(schema.NotFound, "no process has pid %d: Process.List shows who is there", pid)
}

func answer(data any) (kernel.Result, error) {
	raw, err := schema.Marshal(data)
	return kernel.Result{Data: raw}, err
}

func appendPID(dst []byte, member string, pid int64) []byte {
	return strconv.AppendInt(append(dst, member...), pid, 10)
}

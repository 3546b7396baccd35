// Package rewind answers the syscalls about earlier states of the kernel (PROTOCOL 12). It has no state: it reads
// earlier states from the journal, through a view, and a command of the domain that made a change undoes it.
package rewind

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Question is what a Message.Replay asks for: a key of an origin, a process, or, with neither, a summary.
type Question struct {
	Until  int64
	Caller int64
	Origin string // of the caller
	Key    *string
	PID    int64 // 0: no process

	Token, Memory, Mailbox bool // the parts of the process that the caller may read now

	// Told is called now and then with the entries read so far, and how many there are to read; nil: not wanted.
	Told func(read, of int64)
}

// Past is a view of earlier states of the kernel. It is slow, and safe for concurrent use.
type Past interface {
	Replay(ctx context.Context, q *Question) (*schema.ReplayOutput, error)
}

// Shell is what the domain needs of its surroundings.
type Shell struct {
	Past Past
	// May returns nil if the gate would let the caller of a call make another call now. It is called by the owner of
	// the domain only.
	May func(call *kernel.Call, row *schema.Syscall, data []byte) *fault.Fault
}

// Undo is the work of a Message.Undo. It ends in a schema.UndoOutput.
type Undo struct {
	Seq    uint64
	DryRun bool
}

// Domain answers the syscalls of schema.Rewind.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	processes kernel.Processes
	shell     atomic.Pointer[Shell]
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. Until Serve was called it replays nothing.
func New(processes kernel.Processes) *Domain {
	d := &Domain{processes: processes}
	d.Handlers = kernel.Bind(schema.Rewind,
		kernel.Query(schema.MessageReplay, d.replay),
		kernel.Effect(schema.MessageUndo, newUndo),
		kernel.Step(schema.MessageUndo.End, kernel.End, nil),
	)
	return d
}

// Serve sets the surroundings, before the first call.
func (d *Domain) Serve(s Shell) { d.shell.Store(&s) }

// replay answers Message.Replay. An agent sees a value only if it may read that value now, and the parts of a process
// that it may read now.
func (d *Domain) replay(call *kernel.Call, in *schema.ReplayInput) (out schema.ReplayOutput, err error) {
	shell := d.shell.Load()
	if shell == nil {
		return out, fault.KernelUnsupported.New("this kernel cannot look back")
	}
	q := &Question{Until: in.UntilSeq, Caller: call.PID, Origin: call.Origin, Told: Told(call.Progress, call.Message.Meta.ID)}
	may := func(row *schema.Syscall, form string, args ...any) *fault.Fault {
		if call.PID == kernel.Operator {
			return nil
		}
		return shell.May(call, row, fmt.Appendf(nil, form, args...))
	}
	switch {
	case in.Key != nil && in.PID != nil:
		return out, kernel.Invalid("pid", "is given beside key: ask for one of them")
	case in.Key != nil:
		q.Key = in.Key
		if strings.HasPrefix(strings.TrimPrefix(*in.Key, "/"), "proc/") {
			return out, kernel.Invalid("key", "is below proc/, which the kernel makes when it is read: ask for a process with pid")
		}
		if why := may(schema.MemoryGet.Row(), `{"key":%s}`, schema.AppendString(nil, *in.Key)); why != nil {
			return out, why
		}
	case in.PID != nil:
		q.PID = *in.PID
		if err := kernel.MayAskAbout(d.processes, call.PID, q.PID); err != nil {
			return out, err
		}
		if why := may(schema.ProcessGet.Row(), `{"pid":%d}`, q.PID); why != nil {
			return out, why
		}
		q.Token = may(schema.CapabilityGet.Row(), `{"pid":%d}`, q.PID) == nil
		q.Memory = may(schema.SyscallGetState.Row(), `{"target_pid":%d}`, q.PID) == nil
		q.Mailbox = call.PID == kernel.Operator || call.PID == q.PID
	case call.PID != kernel.Operator:
		return out, fault.CapabilityOperatorOnly.New("pid %d may not see the state of all", call.PID).WithFix("name a key or a pid")
	}
	kernel.Compute(call, func(ctx context.Context) (schema.ReplayOutput, error) {
		answer, err := shell.Past.Replay(ctx, q)
		if err != nil {
			return schema.ReplayOutput{}, err
		}
		return *answer, nil
	})
	return out, nil
}

// Told returns the function that pushes the progress of the call with an id, nil if nobody has asked for that.
func Told(push func(kernel.Event), id string) func(read, of int64) {
	if push == nil {
		return nil
	}
	return func(read, of int64) {
		total, what := float64(of), "entries read"
		data, err := schema.Marshal(&schema.ProgressedEvent{ID: id, Progress: float64(read), Total: &total, Message: &what})
		if err == nil { // numbers and texts can always be written
			push(kernel.Event{Type: schema.SyscallProgressed, Data: data, Causation: id})
		}
	}
}

func newUndo(_ *kernel.Call, in *schema.UndoInput) (*Undo, error) {
	return &Undo{Seq: uint64(in.Seq), DryRun: in.DryRun != nil && *in.DryRun}, nil
}

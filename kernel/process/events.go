package process

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Recent is how many events are kept for subscribers. A subscriber that falls further behind is
// told that it has missed some. It must be less than Remembered, so that the ancestors of a process
// are known as long as an event names it.
const Recent = 4096

// maxEvents is how many events are pushed at once.
const maxEvents = 16

// stale is after how many events of other processes a follower's position is moved past them.
const stale = 256

// looks bounds the processes that one Process.Watch checks, ancestors included; then the follower asks again. It
// exceeds the depth of any process.
const looks = 2048

// event is a change of a process.
type event struct {
	typ         string
	process     *schema.Descriptor // after it
	causation   string
	correlation string
}

// events are the latest events. Their total number is part of the state, so that a follower continues at its position
// after a rebuild; the events themselves are in the journal, and not part of the state.
type events struct {
	count  int64   // total number
	recent []event // a ring buffer, once it is full
	oldest int     // start of the ring
}

func (e *events) add(ev event) {
	e.count++
	if len(e.recent) < Recent {
		e.recent = append(e.recent, ev)
		return
	}
	e.recent[e.oldest] = ev
	e.oldest = (e.oldest + 1) % Recent
}

// first is the number of events before the oldest one kept.
func (e *events) first() int64 { return e.count - int64(len(e.recent)) }

// at is the event with that number of earlier ones, if it is kept.
func (e *events) at(n int64) *event {
	return &e.recent[(e.oldest+int(n-e.first()))%len(e.recent)]
}

// note adds the event of an applied command. Its cause is the original request: for a step, the call that it is a
// step of.
func (d *Domain) note(e *kernel.Entry, typ string, pid int64) {
	p, ok := d.table.processes.Get(pid)
	if !ok {
		return
	}
	cause := e.Meta.ID
	if typ != schema.ProcessSpawned && e.Meta.Causation != "" {
		cause = e.Meta.Causation
	}
	d.events.add(event{typ: typ, process: p, causation: cause, correlation: e.Meta.Correlation})
}

// subscribe answers Process.Subscribe.
func (d *Domain) subscribe(call *kernel.Call, in *schema.ProcessSubscribeInput) (schema.ProcessSubscribeOutput, error) {
	pid := call.PID
	if in.PID != nil {
		pid = *in.PID
	}
	if pid != kernel.Operator && (!d.table.known(pid) || kernel.Visible(d.table, call, pid) == nil) {
		return schema.ProcessSubscribeOutput{}, kernel.NoProcess(pid)
	}
	if call.PID != kernel.Operator && pid != call.PID && !kernel.Descends(d.table, pid, call.PID) {
		return schema.ProcessSubscribeOutput{}, fault.CapabilityNotYours.New("pid %d may not follow pid %d", call.PID, pid).
			WithFix("a process follows itself and its descendants, the operator follows any").With("pid", strconv.FormatInt(pid, 10))
	}
	call.Follow(schema.ProcessWatch.With(&schema.ProcessWatchInput{PID: pid, After: d.events.count}))
	return schema.ProcessSubscribeOutput{PID: pid}, nil
}

// watch answers Process.Watch.
func (d *Domain) watch(call *kernel.Call, in *schema.ProcessWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	at, emitted := max(in.After, d.events.first()), 0
	if missed := at - in.After; missed > 0 {
		data, err := schema.Marshal(&schema.ProcessLag{Missed: missed})
		if err != nil {
			return out, err
		}
		call.Emit(kernel.Event{Type: schema.ProcessLagged, Data: data})
		emitted++
	}
	for left := looks; at < d.events.count && emitted < maxEvents && left > 0; at++ {
		e := d.events.at(at)
		concerned, seen := d.concerns(e.process.PID, in.PID)
		if left -= seen; !concerned {
			continue
		}
		data, err := schema.Marshal(e.process)
		if err != nil {
			return out, err
		}
		call.Emit(kernel.Event{Type: e.typ, Data: data, Causation: e.causation, Correlation: e.correlation})
		emitted++
	}
	if emitted == 0 && at == d.events.count && at-in.After < stale {
		call.Park(kernel.Forever)
		return out, nil
	}
	call.Follow(schema.ProcessWatch.With(&schema.ProcessWatchInput{PID: in.PID, After: at}))
	return out, nil
}

// concerns reports whether a process is the followed one or descends from it, and how many processes it checked.
func (d *Domain) concerns(pid, followed int64) (concerned bool, seen int) {
	for seen = 1; ; seen++ {
		if followed == kernel.Operator || pid == followed {
			return true, seen
		}
		p := d.table.Process(pid)
		if p == nil || p.ParentPID >= pid || p.ParentPID == kernel.Operator {
			return false, seen
		}
		pid = p.ParentPID
	}
}

package process

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Recent is how many events are kept for who follows processes. A follower reads as fast as it likes: nothing is kept for it
// beside these, and one that has fallen behind them is told so. It has to be less than Remembered, so that whose
// descendant a process was is known as long as an event tells of it.
const Recent = 4096

// maxEvents is how many of them are pushed at once.
const maxEvents = 16

// stale is how many events of others' a follower may have been shown nothing of before it is moved on behind them.
const stale = 256

// event is something that has happened to a process.
type event struct {
	typ         string
	process     *schema.Descriptor // after it
	causation   string
	correlation string
}

// events are the last that were applied. How many there have been is part of the state, so that a follower goes on where it
// was when the state is made anew; the events themselves are the journal's, and not kept beside it.
type events struct {
	count  int64   // how many there have been
	recent []event // a ring, once it is full
	oldest int     // where the ring begins
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

// first is how many there have been before the oldest that is kept.
func (e *events) first() int64 { return e.count - int64(len(e.recent)) }

// at is the event that so many have been before, of those that are kept.
func (e *events) at(n int64) *event {
	return &e.recent[(e.oldest+int(n-e.first()))%len(e.recent)]
}

// note adds what a command that has been applied did to a process. The cause is the request behind it: that of a step is the
// call that it was for.
func (d *Domain) note(call *kernel.Call, typ string, pid int64) {
	p, ok := d.table.processes.Get(pid)
	if !ok {
		return
	}
	meta := call.Message.Meta
	cause := meta.ID
	if typ != schema.ProcessSpawned && meta.Causation != "" {
		cause = meta.Causation
	}
	d.events.add(event{typ: typ, process: p, causation: cause, correlation: meta.Correlation})
}

// happened notes what a command has done beside ending processes.
func (d *Domain) happened(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.SpawnInput:
		d.note(call, schema.ProcessSpawned, d.table.next-1)
	case *schema.ProcessStartInput:
		if in.Again {
			d.note(call, schema.ProcessRestarted, in.PID)
		} else {
			d.note(call, schema.ProcessStarted, in.PID)
		}
	case *schema.ProcessEndInput:
		d.note(call, schema.ProcessExited, in.PID)
		if p, ok := d.table.processes.Get(in.PID); ok && p.State == blocked {
			d.note(call, schema.ProcessBlocked, in.PID)
		}
	}
}

// subscribe answers Process.Subscribe.
func (d *Domain) subscribe(call *kernel.Call, in *schema.ProcessSubscribeInput) (kernel.Result, error) {
	pid := call.PID
	if in.PID != nil {
		pid = *in.PID
	}
	if pid != kernel.Operator && (!d.table.known(pid) || kernel.Visible(d.table, call, pid) == nil) {
		return kernel.Result{}, unknown(pid)
	}
	if call.PID != kernel.Operator && pid != call.PID && !kernel.Descends(d.table, pid, call.PID) {
		return kernel.Result{}, schema.Errorf(schema.Forbidden,
			"pid %d may not follow pid %d: a process follows itself and its descendants, the operator follows any", call.PID, pid)
	}
	result, err := answer(&schema.ProcessSubscribeOutput{PID: pid})
	result.Lasting = &kernel.Lasting{Follow: watch(pid, d.events.count)}
	return result, err
}

func watch(pid, after int64) *schema.Request {
	next := schema.ProcessWatch.With(&schema.ProcessWatchInput{PID: pid, After: after})
	return &next
}

// look answers Process.Watch.
func (d *Domain) look(in *schema.ProcessWatchInput) (kernel.Result, error) {
	var list []kernel.Event
	at := max(in.After, d.events.first())
	if missed := at - in.After; missed > 0 {
		data, err := schema.Marshal(&schema.ProcessLag{Missed: missed})
		if err != nil {
			return kernel.Result{}, err
		}
		list = append(list, kernel.Event{Type: schema.ProcessLagged, Data: data})
	}
	for ; at < d.events.count && len(list) < maxEvents; at++ {
		e := d.events.at(at)
		if !d.concerns(e.process.PID, in.PID) {
			continue
		}
		data, err := schema.Marshal(e.process)
		if err != nil {
			return kernel.Result{}, err
		}
		list = append(list, kernel.Event{Type: e.typ, Data: data, Causation: e.causation, Correlation: e.correlation})
	}
	if len(list) == 0 && at-in.After < stale {
		return kernel.Result{Wait: kernel.Forever}, nil
	}
	return kernel.Result{
		Data:    []byte(`{"success":true}`),
		Lasting: &kernel.Lasting{Events: list, Follow: watch(in.PID, at)},
	}, nil
}

// concerns reports whether a process is the followed one or descends from it.
func (d *Domain) concerns(pid, followed int64) bool {
	return followed == kernel.Operator || pid == followed || kernel.Descends(d.table, pid, followed)
}

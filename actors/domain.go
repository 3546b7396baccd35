package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// domain is the actor that owns a state machine: only it calls Decide and Apply, one call at a time, in the order of its
// mailbox. The steps of a call run before the call, one after another, while later calls wait. A parked call delays no
// other.
type domain struct {
	kernel *Kernel
	name   schema.Domain
	state  kernel.Domain
	log    *slog.Logger
	epoch  uint64 // of the journal that the state was built from

	rebuilding rebuilding
	late       *stepDone // arrived during a rebuild

	queue   []*batch               // batches after a call with steps
	busy    *saga                  // that call
	watched map[schema.Domain]bool // domains of steps that it watches for their death
	waiters
	news kernel.News // that is not published yet
}

// waiters are the calls of a domain that have no outcome yet.
type waiters struct {
	pended   map[string]*pended  // by connection: calls that wait at the gate
	parked   map[int64][]*parked // by the PID of their call, in the order in which they were parked
	watching []*batch            // queries of subscriptions without news: any change of the state may be news
	changes  uint64              // number of changes
}

// saga is a call that is decided in slices, or whose steps run.
type saga struct {
	batch  *batch
	at     int // index of the call in the batch
	result kernel.Result
	begun  time.Time
	epoch  uint64          // of the journal in which it began
	awaits schema.Domain   // the domain of the step that runs
	last   *schema.Syscall // the row of the last step in this turn
	uses   bool            // its step uses up the call's approval: the call is decided again after it
}

// published tells a domain that another domain has published a change that its followers may ask about.
type published struct{}

// stepDone tells the domain of a saga that its step was applied, or why it was not.
type stepDone struct {
	saga *saga
	err  *fault.Fault
}

func (d *domain) fail(call *kernel.Call, err error) {
	call.Err = fault.Of(err)
	d.kernel.keys.Record(call)
	if call.Err.Kind == fault.Internal {
		d.log.Error("syscall failed", "call", call, "error", err)
	}
}

// finish gives a call its successful outcome.
func (d *domain) finish(ctx actor.Context, call *kernel.Call, result *kernel.Result) {
	call.Data, call.Refs, call.Effect = result.Data, result.Refs, result.Effect
	d.kernel.keys.Record(call)
	if call.Repeated {
		return
	}
	call.Lasting = result.Lasting
	if result.Tick > call.Tick {
		d.kernel.clock.reach(result.Tick)
		call.Tick = result.Tick
	}
	if call.Syscall.Kind == schema.KindCommand {
		d.state.Apply(call)
		d.stateChanged()
		d.news.Add(result.News)
	}
	if result.Shutdown {
		d.kernel.requestShutdown(nil)
	}
	d.wake(ctx, result.Wakes)
}

// decide calls the state machine. Decide changes nothing, so a panic fails only that call. Only a call that runs alone, and
// whose row has an outcome, may start an effect; others would never be answered. Only a call that runs alone may read.
func (d *domain) decide(call *kernel.Call, alone bool) (result kernel.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("syscall panicked", "call", call, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("decide %s: panic: %v", call.Message.Type, r)
		}
	}()
	result, err = d.state.Decide(call)
	if err == nil && result.Effect != nil && result.Effect.Run != nil && (!alone || call.Syscall.Outcome == "") {
		err = fmt.Errorf("begin %s: its row has no outcome, or is not alone", call.Message.Type)
	}
	if err == nil && result.Read != nil && !alone {
		err = fmt.Errorf("read for %s: its row is not alone", call.Message.Type)
	}
	return result, err
}

// forward sends a finished batch to the audit log, and then publishes what it changed: the entries of decisions that other
// domains base on it follow its entry.
func (d *domain) forward(ctx actor.Context, b *batch) {
	b.epoch = d.epoch
	ctx.Send(d.kernel.audit, b)
	if d.rebuilding.err == nil { // otherwise the last published state stays until there is one again
		d.publish()
	}
	news := d.news
	d.news = kernel.News{}
	if news.Resumed {
		d.kernel.Answered(kernel.Resumed)
	}
	if news.Exited != nil {
		for name := range d.kernel.states {
			ctx.Send(d.kernel.domains[name], exitedProcesses{news.Exited})
		}
	}
	if news.Callable {
		if grants := d.kernel.domains[schema.Capability]; grants != nil {
			ctx.Send(grants, published{})
		}
	}
	b.sender.forwarded(ctx)
}

// publish makes the applied changes visible to the other domains.
func (d *domain) publish() {
	if p, ok := d.state.(kernel.Publisher); ok {
		p.Publish()
	}
}

// pended is a batch whose first call waits at the gate, and the later ones of its connection, since frames take effect in
// order.
type pended struct {
	batch  *batch
	behind []*batch
}

// parked is a batch of one call that waits for an event in its domain.
type parked struct {
	batch *batch
	pid   int64       // of its call; if a timer's message is late, the batch has been reused
	timer *time.Timer // nil: it waits without a limit
}

// LogValue names the call without its data.
func (p *parked) LogValue() slog.Value { return p.batch.LogValue() }

// rebuilding is a domain's progress in rebuilding its state, after the journal has lost entries that the state had applied.
// A goroutine reads the journal and owns the state meanwhile: calls are queued or refused, nothing is published, no
// snapshot is saved.
type rebuilding struct {
	held    bool   // calls wait: the state, or that of a registry, is not rebuilt yet
	stalled bool   // calls are refused instead, because the rebuild takes long
	wanted  uint64 // epoch of the journal that the state must be built from
	made    uint64 // the epoch that it was built from; 0 if that failed
	resumed uint64 // the epoch for which the registries are rebuilt

	// err is why there is no state: errRestoring while a goroutine rebuilds it, or an error that may be temporary. nil:
	// there is a state.
	err    error
	failed error // the last such error since a state was built
	retry  *time.Timer
	work   *restoring // of the goroutine; nil: it does not run

	following []*batch // questions of subscriptions that arrived while calls were refused
}

// waits reports whether calls are queued.
func (r *rebuilding) waits() bool { return r.held && !r.stalled }

// answeredQuestion makes the calls that wait for this question pass the gate again.
type answeredQuestion struct{ id string }

// exitedProcesses makes the waiting calls of ended processes pass the gate again.
type exitedProcesses struct{ pids []int64 }

// hangUp tells a domain that a client has disconnected: its waiting calls are cancelled.
type hangUp struct{ conn string }

// wakeUp makes a domain decide all its waiting calls again.
type wakeUp struct{}

// bound is a batch that waited for a question, and whose first call binds the files as they are now.
type bound struct{ batch *batch }

// Answered makes the calls that wait for this question pass the gate again. It may be called until Close.
func (k *Kernel) Answered(question string) {
	for name := range k.states {
		k.root.Send(k.domains[name], answeredQuestion{question})
	}
}

// WakeUp decides the waiting calls of a domain again, because of an event that is not a call. It may be called until Close.
func (k *Kernel) WakeUp(name schema.Domain) { k.root.Send(k.domains[name], wakeUp{}) }

// park keeps b until the PID of its call is woken, or for the given time, counted from when it was first parked.
func (d *domain) park(ctx actor.Context, b *batch, wait time.Duration) {
	b.calls[0].Parked = true
	if b.until.IsZero() {
		b.until = time.Now().Add(wait)
	}
	p := &parked{batch: b}
	self, root := ctx.Self(), d.kernel.root
	p.timer = time.AfterFunc(time.Until(b.until), func() { root.Send(self, p) })
	d.keep(p)
}

// keep stores a parked batch.
func (d *domain) keep(p *parked) {
	if d.parked == nil {
		d.parked = make(map[int64][]*parked)
	}
	p.pid = p.batch.calls[0].PID
	d.parked[p.pid] = append(d.parked[p.pid], p)
}

// take removes the parked batches of a process that pick selects.
func (d *domain) take(pid int64, pick func(*parked) bool) (taken []*parked) {
	left := slices.DeleteFunc(d.parked[pid], func(p *parked) bool {
		if !pick(p) {
			return false
		}
		if p.timer != nil {
			p.timer.Stop()
		}
		taken = append(taken, p)
		return true
	})
	if d.parked[pid] = left; len(left) == 0 {
		delete(d.parked, pid)
	}
	return taken
}

// wake decides the waiting calls of these processes again, before any later message.
func (d *domain) wake(_ actor.Context, pids []int64) {
	if len(d.parked) == 0 {
		return
	}
	for _, pid := range pids {
		for _, p := range d.take(pid, func(*parked) bool { return true }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

// stateChanged decides the questions without news again, before any later message: the state has changed.
func (d *domain) stateChanged() {
	d.changes++
	d.queue = append(d.queue, d.unwatch(func(*batch) bool { return true })...)
}

// unwatch removes the waiting questions that pick selects.
func (d *domain) unwatch(pick func(*batch) bool) (taken []*batch) {
	d.watching = slices.DeleteFunc(d.watching, func(b *batch) bool {
		if !pick(b) {
			return false
		}
		taken = append(taken, b)
		return true
	})
	return taken
}

// guarded runs a part of a decision. A panic fails only that call.
func (d *domain) guarded(call *kernel.Call, decide func() (kernel.Result, error)) (result kernel.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("syscall panicked", "call", call, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("decide %s: panic: %v", call.Message.Type, r)
		}
	}()
	return decide()
}

// rebuild tells a domain to rebuild its state from the journal, and to queue calls until resume: until all registries are
// rebuilt they may show what was lost.
type rebuild struct{ epoch uint64 }

// resume tells a domain to run calls again.
type resume struct{ epoch uint64 }

// rebuilt reports that a rebuild is done.
type rebuilt struct {
	domain schema.Domain
	epoch  uint64
}

// takeSnapshot asks a domain for its state.
type takeSnapshot struct{ epoch uint64 }

// snapshotOf is that state. When the audit log handles it, it has appended exactly what the domain had applied.
type snapshotOf struct {
	domain schema.Domain
	epoch  uint64
	write  func(func([]byte) error) error
}

// restoring is a state that a goroutine builds.
type restoring struct {
	epoch     uint64
	begun     time.Time
	failure   atomic.Pointer[error] // set when the goroutine has finished, to nil if it succeeded
	abandoned atomic.Bool           // the domain has ended, and does not use the state
	replaces  bool                  // the work of a Replace
}

package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Quorum makes answers wait until a majority of other disks has their entries too. Kernel.Acknowledge reports that.
type Quorum struct {
	Acknowledged uint64        // the last entry that the majority had at the start
	Patience     time.Duration // how long a call waits for it

	// Leads reports whether no other kernel can lead in place of this one at present; nil: none ever can. It must be quick.
	// While it is false nothing is answered, since the other kernel may have newer entries. Kernel.Lead reports changes.
	Leads func() bool
}

// quorumState is what the audit actor knows about the other disks.
type quorumState struct {
	Quorum
	base    uint64 // the last entry at the start: the initial state may reveal all entries up to it
	away    bool   // an entry has waited for too long: commands are refused
	ticking bool
	lost    bool // another kernel may lead: programs were ended
}

// holds reports whether the answers of h wait for other disks, or for the lead. Refusals reveal nothing.
func (q *quorumState) holds(h *unreleased) bool {
	return h.all > q.Acknowledged || q.Leads != nil && !q.Leads() && !h.batch.throttled()
}

func newQuorumState(of *Quorum, head uint64) *quorumState {
	if of == nil {
		return nil
	}
	return &quorumState{Quorum: *of, base: head}
}

// leads reports whether this host leads the kernel, or another one may lead it now.
type leads struct{ held bool }

// Lead reports whether no other kernel can lead in place of this one. If one can, programs are ended and commands refused.
// It may be called until Close.
func (k *Kernel) Lead(held bool) { k.root.Send(k.audit, leads{held}) }

// lead handles a change of Quorum.Leads.
func (a *audit) lead(ctx actor.Context, held bool) {
	q := a.quorum
	if q == nil || a.stopped {
		return
	}
	a.kernel.unled.Store(!held)
	switch {
	case !held && !q.lost:
		q.lost, q.away = true, true
		a.kernel.away.Store(true)
		a.log.Error("another host may lead this kernel: commands are refused, and programs are ended")
		ctx.Send(a.kernel.agents, expired{q.step()})
	case held && q.lost:
		q.lost = false
		a.log.Info("no other host leads this kernel: commands are accepted once the bus acknowledges entries")
		a.present()
	}
	a.release(ctx)
}

// present accepts commands again if a majority has all entries.
func (a *audit) present() {
	q := a.quorum
	if q.away && !q.lost && q.Acknowledged >= a.lastCommand() {
		q.away = false
		a.kernel.away.Store(false)
		a.log.Info("the bus acknowledges entries again: commands are accepted")
	}
}

// step is how often waiting calls are checked. It is also the longest delay of what the operator needs to end agents.
func (q *quorumState) step() time.Duration { return q.Patience / 10 }

// acknowledged reports that a majority has all entries up to through.
type acknowledged struct{ through uint64 }

// quorumTick makes the audit actor check what waits for the majority.
type quorumTick struct{}

// fenced reports that another kernel writes the stream of this one.
type fenced struct{ err error }

// Acknowledge reports that a majority of the other disks has all entries up to through. It may be called until Close.
func (k *Kernel) Acknowledge(through uint64) { k.root.Send(k.audit, acknowledged{through}) }

// Fence ends the kernel, because another one writes its stream. Calls without an acknowledgment are not answered with
// success. It may be called until Close.
func (k *Kernel) Fence(err error) { k.root.Send(k.audit, fenced{err}) }

// revealsToAll returns the last entry whose effect b may have seen, and that a majority must have. The tick does not count:
// a kernel that takes over may repeat a part of it.
func (a *audit) revealsToAll(b *batch, last uint64) uint64 {
	switch {
	case a.quorum == nil:
		return 0
	case b.domain == schema.Audit || b.sender.unrecorded(): // it has seen the journal itself
		return last
	}
	seen := max(a.commands[b.domain], a.commands[schema.Capability], a.commands[schema.Process], a.commands[schema.Approval])
	return min(max(seen, a.quorum.base), last)
}

// mayLeave reports whether the answers of a batch may leave.
func (a *audit) mayLeave(h *unreleased) bool {
	switch q := a.quorum; {
	case h.seq > a.synced:
		return false
	case q == nil || !q.holds(h):
		return true
	case q.away && h.batch.answersFromDisk():
		h.batch.markDiskOnly()
		return true
	}
	return false
}

// answersFromDisk reports whether b may be answered from the kernel's own disk while there is no majority: urgent commands
// of the operator, and the operator's queries about the kernel itself.
func (b *batch) answersFromDisk() bool {
	if b.urgent() {
		return true
	}
	if _, ok := b.sender.(*frames); !ok {
		return false
	}
	for i := range b.calls {
		call := &b.calls[i]
		if call.Caller.PID != kernel.Operator || call.Caller.Via == kernel.ViaCluster || call.Syscall == nil || call.Syscall.Kind != schema.KindQuery {
			return false
		}
	}
	switch b.domain {
	case schema.Kernel, schema.Audit, schema.Process, schema.Capability, schema.Resource, schema.Budget:
		return true
	}
	return false
}

func (b *batch) markDiskOnly() {
	for i := range b.calls {
		b.calls[i].Proof.DiskOnly = true
	}
}

// acknowledged releases the batches that waited for a majority.
func (a *audit) acknowledged(ctx actor.Context, through uint64) {
	q := a.quorum
	if q == nil || a.stopped || through <= q.Acknowledged {
		return
	}
	q.Acknowledged = through
	a.present()
	a.release(ctx)
}

// lastCommand returns the entry of the last command.
func (a *audit) lastCommand() (last uint64) {
	for _, seq := range a.commands {
		last = max(last, seq)
	}
	return last
}

// watchQuorum schedules a quorumTick while batches wait for a majority.
func (a *audit) watchQuorum() {
	q := a.quorum
	if q == nil || q.ticking || !slices.ContainsFunc(a.unreleased, func(h unreleased) bool { return q.holds(&h) }) {
		return
	}
	q.ticking = true
	time.AfterFunc(q.step(), func() { a.kernel.root.Send(a.kernel.audit, quorumTick{}) })
}

// quorumTick answers what has waited for too long. A kernel that ends waits for less time, and its own steps do not wait
// for the majority then: the next start sends their entries.
func (a *audit) quorumTick(ctx actor.Context) {
	q := a.quorum
	q.ticking = false
	if a.stopped {
		return
	}
	now, ending, patience := time.Now(), a.kernel.ending.Load(), q.Patience
	if ending {
		patience = 2 * q.step()
	} else if q.lost {
		patience = q.step()
	}
	kept := a.unreleased[:0]
	for _, h := range a.unreleased {
		waited := now.Sub(h.since)
		if !q.holds(&h) || h.seq > a.synced || waited < q.step() {
			kept = append(kept, h)
			continue
		}
		if waited >= patience && !q.away {
			q.away = true
			a.kernel.away.Store(true)
			a.log.Error("no majority of the bus acknowledges entries: commands are refused until one does", "entry", h.all, "acknowledged", q.Acknowledged)
		}
		own, _ := h.batch.sender.(*step)
		switch {
		case h.batch.answersFromDisk():
			h.batch.markDiskOnly()
			h.batch.sender.answer(ctx, a.kernel)
		case own != nil && own.ends == nil && ending:
			h.batch.sender.answer(ctx, a.kernel)
		case waited >= patience:
			if rest := a.giveUp(ctx, &h); rest != nil {
				kept = append(kept, *rest)
			}
		default:
			kept = append(kept, h)
		}
	}
	clear(a.unreleased[len(kept):])
	a.unreleased = kept
	a.release(ctx)
}

// giveUp answers a client that has waited for a majority for too long, and returns the batch that still waits: its entries
// stay in the journal, and its effects outside the kernel are still carried out when a majority has them.
func (a *audit) giveUp(ctx actor.Context, h *unreleased) (rest *unreleased) {
	if s, ok := h.batch.sender.(*step); ok {
		if s.ends != nil {
			f := s.ends
			s.ends, s.account = nil, nil
			f.calls[0].Effect, f.calls[0].Data, f.calls[0].Err = nil, nil, errUnknownOutcome(&f.calls[0])
			f.withoutProof()
			ctx.Send(f.replyTo, &f.batch)
		}
		return h
	}
	f, ok := h.batch.sender.(*frames)
	if !ok {
		return h
	}
	if f.intends() {
		a.notBegun(&f.calls[0])
	} else if list := f.effects(); list != nil {
		later := &step{}
		later.sender, later.domain = later, f.domain
		later.calls = slices.Clone(f.calls)
		rest = &unreleased{batch: &later.batch, seq: h.seq, all: h.all, since: h.since}
	}
	for i := range f.calls {
		call := &f.calls[i]
		if call.Throttled {
			continue
		}
		if call.Syscall != nil && call.Syscall.Kind == schema.KindCommand && call.Err == nil {
			call.Err = errUnknownOutcome(call)
		} else {
			call.Err = errAway()
		}
		call.Data, call.Lasting, call.Effect, call.Refs = nil, nil, nil, nil
	}
	f.withoutProof()
	ctx.Send(f.replyTo, &f.batch)
	return rest
}

// notBegun ends an intent whose caller was told that its outcome is unknown: it is not carried out.
func (a *audit) notBegun(call *kernel.Call) {
	end := &schema.EffectEnd{
		Intent: int64(call.Proof.Seq), Type: call.Message.Type, PID: call.PID, Causation: call.Message.Meta.Causation,
		Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: errAway()}),
	}
	if do, ok := call.Effect.Run.(*kernel.Invocation); ok {
		end.Name = do.Name
	}
	step, err := a.kernel.step(call.AsCause(), call.Syscall.Ended(end))
	if err != nil {
		a.log.Error("effect has no outcome", "call", call, "error", err)
		return
	}
	step.calls[0].Holds = call.Holds
	a.kernel.send(step)
}

// fenced ends the kernel.
func (a *audit) fenced(ctx actor.Context, err error) {
	a.stopWith(ctx, err, func(*kernel.Call) *fault.Fault {
		return fault.ClusterFenced.New("another kernel writes the journal of this one on the bus: whether this was done shows there")
	})
}

func errAway() *fault.Fault {
	return fault.ClusterAway.New("no majority of the bus acknowledges entries of the journal: nothing was done; try again once the bus is back (pwos cluster status)")
}

func errUnknownOutcome(call *kernel.Call) *fault.Fault {
	return fault.ClusterUnknown.New("%s is on the disk of this kernel, and no majority of the bus has acknowledged it in time: it may be lost; send it again with its idempotency key once the bus is back", call.Message.Type)
}

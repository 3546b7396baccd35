package actors

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// audit is the actor that appends to the journal; the domain schema.Audit answers queries about it. It appends the calls of
// every finished batch, and releases their answers when nothing that they reveal can be lost.
//
// A batch with a command waits until it is on disk. A batch of queries waits until it is written, and until the commands
// that it may have seen are on disk: those of its own domain, and of the registries and approvals that every domain reads.
// All entries that are appended during an fsync share the next one (group commit).
type audit struct {
	kernel    *Kernel
	log       *slog.Logger
	journal   *journal.Log
	epoch     uint64
	encoder   record.Encoder
	metrics   *metrics.Metrics
	snapshots snapshotting
	quorum    *quorumState // nil: answers wait only for the kernel's own disk
	page
	disk
	holding
	failing
}

// page is what was appended and is not written.
type page struct {
	fresh     []*batch
	urgent    bool   // it may use the journal's reserve
	scheduled bool   // a flush is scheduled
	appended  moment // at the last entry
	written   moment // at the last entry that was written
}

// disk is how far the disk is.
type disk struct {
	synced    uint64
	syncing   bool          // a sync runs
	rotating  bool          // the sync starts the next segment: nothing is written until that exists
	resync    bool          // another sync must follow
	delayed   bool          // a timer will start a sync
	noSooner  time.Time     // earliest time of the next sync, after a long one
	syncEvery time.Duration // not 0: answers do not wait for the disk, which is synced this much later
	signing   atomic.Bool   // a checkpoint is being signed
}

// holding is what waits for the disk.
type holding struct {
	unreleased []unreleased             // written, not released yet
	commands   map[schema.Domain]uint64 // seq of the last command of each domain
	endings    []chan<- error           // of callers that wait for the end of the segment
}

// failing is what follows from a disk that failed.
type failing struct {
	stopped    bool                   // a sync has failed: nothing is appended any more
	retries    []*step                // steps to be retried when the journal can be written
	rebuilding map[schema.Domain]bool // registries that have not rebuilt their state yet
}

func newAudit(k *Kernel, log *journal.Log) *audit {
	return &audit{
		kernel: k, log: k.log.With("domain", "audit"), journal: log, metrics: k.metrics,
		disk: disk{synced: log.Synced()}, holding: holding{commands: make(map[schema.Domain]uint64)},
	}
}

// moment is a tick, and the seq of the first entry with it.
type moment struct {
	tick int64
	seq  uint64
}

// unreleased is a batch whose answers wait until seq is on disk, and a majority of other disks has all.
type unreleased struct {
	batch *batch
	seq   uint64
	all   uint64    // 0 without a quorum
	since time.Time // zero without a quorum
}

// flush requests a write of everything that was appended in a turn.
type flush struct{}

// syncNow requests a sync of what was written.
type syncNow struct{}

// durable reports a sync: entries up to through are on disk.
type durable struct {
	through uint64
	took    time.Duration
	err     error
}

// After a sync that took at least longSync, the next one starts later, by a spacingPart of that time and by maxSpacing at
// most. So clients that were just answered share it with their next calls; otherwise one half of the clients would always
// wait for the other.
const (
	longSync    = 2 * time.Millisecond
	spacingPart = 16
	maxSpacing  = time.Millisecond
)

// hold keeps b until everything that it reveals, up to the entry last, is durable.
func (a *audit) hold(b *batch, last uint64) {
	h := unreleased{batch: b, seq: min(a.reveals(b), last)}
	if a.quorum != nil {
		h.all, h.since = a.revealsToAll(b, last), time.Now()
		h.seq = max(h.seq, h.all)
	}
	a.unreleased = append(a.unreleased, h)
}

// reveals returns the last entry whose effect b may have seen, if answers wait for the disk.
func (a *audit) reveals(b *batch) uint64 {
	if a.syncEvery > 0 {
		return 0
	}
	return max(a.commands[b.domain], a.commands[schema.Capability], a.commands[schema.Process], a.commands[schema.Approval], a.appended.seq)
}

// release sends back every batch whose entries are durable, and starts a sync for those whose entries are not on disk.
func (a *audit) release(ctx actor.Context) {
	kept, unsynced := a.unreleased[:0], false
	for _, h := range a.unreleased {
		if !a.mayLeave(&h) {
			kept, unsynced = append(kept, h), unsynced || h.seq > a.synced
		} else {
			h.batch.sender.answer(ctx, a.kernel)
		}
	}
	clear(a.unreleased[len(kept):])
	a.unreleased = kept
	a.watchQuorum()
	switch {
	case unsynced, a.journal.CheckpointWaits(): // checkpoints cover entries of queries too
		a.sync()
	case a.syncEvery > 0 && a.journal.Written() > a.synced:
		a.syncIn(a.syncEvery)
	}
}

// sync starts a sync at the end of the turn, or after the one that runs.
func (a *audit) sync() {
	if a.resync = a.syncing; a.syncing {
		return
	}
	if early := time.Until(a.noSooner); early > 0 {
		a.syncIn(early)
		return
	}
	a.syncing = true
	a.syncAtRest(a.journal.Sync)
}

// syncIn starts a sync after some time.
func (a *audit) syncIn(d time.Duration) {
	if !a.delayed {
		a.delayed = true
		time.AfterFunc(d, func() { a.kernel.root.Send(a.kernel.audit, syncNow{}) })
	}
}

// syncAtRest runs sync at the end of the turn, which reports to this actor.
func (a *audit) syncAtRest(sync func() (through uint64, err error)) {
	a.kernel.loop.syncAtRest(func() {
		begun := time.Now()
		through, err := sync()
		a.kernel.root.Send(a.kernel.audit, durable{through, time.Since(begun), err})
	})
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

// step is how often waiting calls are checked. It is also the longest delay of what the operator needs to end agents.
func (q *quorumState) step() time.Duration { return q.Patience / 10 }

func newQuorumState(of *Quorum, head uint64) *quorumState {
	if of == nil {
		return nil
	}
	return &quorumState{Quorum: *of, base: head}
}

// Quorum makes answers wait until a majority of other disks has their entries too. Kernel.Acknowledge reports that.
type Quorum struct {
	Acknowledged uint64        // the last entry that the majority had at the start
	Patience     time.Duration // how long a call waits for it

	// Leads reports whether no other kernel can lead in place of this one at present; nil: none ever can. It must be quick.
	// While it is false nothing is answered, since the other kernel may have newer entries. Kernel.Lead reports changes.
	Leads func() bool
}

// snapshotting is the audit log's part of saving snapshots: one round at a time.
type snapshotting struct {
	store   *record.Snapshots
	begun   uint64    // the entry of the states of this round
	every   uint64    // entries between two rounds: what a start after a crash must replay
	due     uint64    // the entry at which the next round may start
	resting time.Time // no round starts earlier
	running bool
	round   []savedPart
	missing int // domains that have not answered yet

	pauses  int               // of PauseSnapshots: no round starts
	pausing []chan<- struct{} // of callers that wait for the end of the round
}

type savedPart struct {
	snapshotOf
	at   journal.Head
	tick int64
}

// endSegment requests the end of the segment that is being written; ended must have room for the answer.
type endSegment struct{ ended chan<- error }

// look requests the extent of the journal from the actor that appends.
type look struct{ answer chan<- record.Extent }

func (k *Kernel) look(ctx context.Context) (record.Extent, error) {
	answer := make(chan record.Extent, 1)
	k.root.Send(k.audit, look{answer})
	select {
	case extent := <-answer:
		return extent, nil
	case <-ctx.Done():
		return record.Extent{}, ctx.Err()
	}
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

// watchQuorum schedules a quorumTick while batches wait for a majority.
func (a *audit) watchQuorum() {
	q := a.quorum
	if q == nil || q.ticking || !slices.ContainsFunc(a.unreleased, func(h unreleased) bool { return q.holds(&h) }) {
		return
	}
	q.ticking = true
	time.AfterFunc(q.step(), func() { a.kernel.root.Send(a.kernel.audit, quorumTick{}) })
}

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

// tell sends a message to every domain, in the order of their names, so that a simulated run is deterministic.
func (a *audit) tell(ctx actor.Context, message any) {
	for _, name := range a.kernel.names {
		ctx.Send(a.kernel.domains[name], message)
	}
}

// lastCommand returns the entry of the last command.
func (a *audit) lastCommand() (last uint64) {
	for _, seq := range a.commands {
		last = max(last, seq)
	}
	return last
}

// leads reports whether this host leads the kernel, or another one may lead it now.
type leads struct{ held bool }

// acknowledged reports that a majority has all entries up to through.
type acknowledged struct{ through uint64 }

// quorumTick makes the audit actor check what waits for the majority.
type quorumTick struct{}

// fenced reports that another kernel writes the stream of this one.
type fenced struct{ err error }

// snapshotsSaved ends a round.
type snapshotsSaved struct{ rest time.Duration }

// pauseSnapshots requests that no snapshot is saved; paused is closed when none is.
type pauseSnapshots struct{ paused chan<- struct{} }

// resumeSnapshots ends a pauseSnapshots.
type resumeSnapshots struct{}

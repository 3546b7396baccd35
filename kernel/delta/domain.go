// Package delta keeps the agents' memories as logs of deltas that fold into a state (PROTOCOL 5, CAP 5).
package delta

import (
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain is the memory of all agents. A memory belongs to an agent id in an origin: processes with
// the same agent id and origin share it, and it outlives them.
//
// The state is the ledgers and the number of checkpoints. Folds of the ledgers are cached, neither
// compared nor stored, so that an answer about the present costs the same for any length of the
// ledger. Amounts, which Decide checks, are summed as deltas arrive; the rest is folded on a
// goroutine when it is requested.
type Domain struct {
	kernel.Handlers
	ledgers     *btree.Map[string, ledger] // by address
	total       int64                      // deltas in force in all ledgers
	checkpoints int64                      // number of checkpoints made

	tallies   map[string]*history[tally] // of each ledger, by address
	pasts     map[string]*past           // by address; of those that were asked about
	processes kernel.Processes           // only Decide reads it: Apply must give the same state without it
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain without any memory. processes tells the agent of a process.
func New(processes kernel.Processes) *Domain {
	d := &Domain{processes: processes}
	d.Handlers = kernel.Bind(schema.Delta,
		kernel.Command(schema.SyscallCommitDelta, d.commit, d.applyCommit),
		kernel.Command(schema.SyscallRollback, d.rollback, nil), // its Delta.Drop applies it
		kernel.Step(schema.DeltaDrop, drop, d.applyDrop),
		kernel.Command(schema.SyscallCheckpoint, d.checkpoint, d.applyCheckpoint),
		kernel.Query(schema.SyscallGetState, d.state),
	)
	d.Reset()
	return d
}

// Reset forgets all memories, and the checkpoints.
func (d *Domain) Reset() {
	d.ledgers = &btree.Map[string, ledger]{}
	d.tallies, d.pasts = make(map[string]*history[tally]), make(map[string]*past)
	d.total, d.checkpoints = 0, 0
}

// applyCommit adds the delta to the memory of the agent that the request, or else the answer, names.
func (d *Domain) applyCommit(e *kernel.Entry, in *schema.CommitDeltaInput) {
	agent := ""
	if in.AgentID != nil {
		agent = *in.AgentID
	} else {
		out, err := schema.SyscallCommitDelta.Output().Decode(e.Data)
		if err != nil {
			panic("delta: answer of Syscall.CommitDelta: " + err.Message) // no kernel has written that
		}
		agent = out.(*schema.CommitDeltaOutput).AgentID
	}
	body, prepared := e.Prepared.(string)
	if !prepared {
		body = encode(in)
	}
	d.add(address(e.Origin, agent), e.Tick, body)
}

func (d *Domain) applyDrop(e *kernel.Entry, in *schema.DeltaDropInput) {
	d.drop(address(e.Origin, in.AgentID), in.ToTick)
}

func (d *Domain) applyCheckpoint(*kernel.Entry, *schema.CheckpointInput) { d.checkpoints++ }

// add appends a delta to its ledger.
func (d *Domain) add(at string, tick int64, body string) {
	l, _ := d.ledgers.Get(at)
	d.ledgers.Set(at, l.add(tick, body))
	d.count(at, body)
}

// count adds a delta to the tally.
func (d *Domain) count(at, body string) {
	t := d.tallies[at]
	if t == nil {
		t = &history[tally]{}
		d.tallies[at] = t
	}
	t.add(body)
	d.total++
}

// tally is the sum of the amounts of a memory.
func (d *Domain) tally(at string) tally {
	if t := d.tallies[at]; t != nil {
		return t.now
	}
	return tally{}
}

// drop removes the deltas after a tick. Their numbers stay used.
func (d *Domain) drop(at string, toTick int64) {
	l, ok := d.ledgers.Get(at)
	if !ok {
		return
	}
	n := l.upTo(toTick)
	if n == len(l.log) {
		return
	}
	d.total -= int64(len(l.log) - n)
	l = l.cut(n)
	d.ledgers.Set(at, l)
	d.tallies[at].cut(l.log)
	if p := d.pasts[at]; p != nil {
		p.cut(n)
	}
}

// address is the key of an agent's memory: origin and agent id, in a form that is unique to the pair.
func address(origin, agent string) string {
	return string(kernel.AppendText(nil, origin)) + agent
}

// ledger is the memory of one agent. It is a value: a change returns a new one, and copies do not
// change.
type ledger struct {
	last int64   // number of the last delta ever committed, dropped or not
	log  []delta // in force, in the order of their commits, ticks ascending
}

// delta is one change of a memory.
type delta struct {
	tick int64
	body string // see encode
}

// add returns the ledger with another delta. The kernel's tick only grows (PROTOCOL 6); if it did not, the delta gets
// the tick of the one before it, since the state at a tick is the fold of a prefix of the log.
func (l ledger) add(tick int64, body string) ledger {
	if n := len(l.log); n > 0 {
		tick = max(tick, l.log[n-1].tick)
	}
	return ledger{last: l.last + 1, log: append(l.log, delta{tick, body})}
}

// upTo returns the number of deltas up to and including a tick.
func (l ledger) upTo(tick int64) int {
	return sort.Search(len(l.log), func(i int) bool { return l.log[i].tick > tick })
}

// cut returns the ledger with its first n deltas only. The next delta gets a new array, since copies still read the
// old one; if few remain they are copied now, to free the others.
func (l ledger) cut(n int) ledger {
	left := l.log[:n:n]
	if n < len(l.log)/2 {
		left = slices.Clip(slices.Clone(left))
	}
	return ledger{last: l.last, log: left}
}

// Package delta keeps the agents' memories as logs of deltas that fold into a state (PROTOCOL 5, CAP 5).
package delta

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain is the memory of all agents. A memory belongs to an agent id in an origin: processes that share both share it,
// and it outlives them.
//
// The state is the ledgers, with the number of checkpoints. What the ledgers come to is worked out beside them, so that an
// answer about the present costs the same however long the ledger is: it is neither compared nor stored. The amounts, which
// commits are judged by, are added up as they come; the rest is folded by what computes an answer, off the actor.
type Domain struct {
	kernel.Handlers
	ledgers     *btree.Map[string, ledger] // by address
	total       int64                      // deltas in force, of all ledgers
	checkpoints int64                      // ever made

	tallies   map[string]*history[tally] // by address; of each ledger
	pasts     map[string]*past           // by address; of those that were asked about
	processes kernel.Processes           // read by what decides alone: what applies must give the same state without it
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain without any memory. processes says which agent a process is.
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

// applyCommit adds the delta to the memory of the agent that the request names, or else the answer.
func (d *Domain) applyCommit(e *kernel.Entry, in *schema.CommitDeltaInput) {
	agent := ""
	if in.AgentID != nil {
		agent = *in.AgentID
	} else {
		out, err := schema.SyscallCommitDelta.Output().Decode(e.Data)
		if err != nil {
			panic("delta: answer of Syscall.CommitDelta: " + err.Message) // the journal holds what was never decided
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

// add puts a delta into force.
func (d *Domain) add(at string, tick int64, body string) {
	l, _ := d.ledgers.Get(at)
	d.ledgers.Set(at, l.add(tick, body))
	d.count(at, body)
}

// count adds up a delta that was put into force.
func (d *Domain) count(at, body string) {
	t := d.tallies[at]
	if t == nil {
		t = &history[tally]{}
		d.tallies[at] = t
	}
	t.add(body)
	d.total++
}

// tally is what the amounts of a memory come to.
func (d *Domain) tally(at string) tally {
	if t := d.tallies[at]; t != nil {
		return t.now
	}
	return tally{}
}

// drop takes the deltas after a tick out of force. Their numbers stay used.
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

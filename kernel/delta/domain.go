// Package delta keeps the agents' memories as logs of deltas that fold into a state (PROTOCOL 5, CAP 5).
package delta

import (
	"fmt"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain is the memory of all agents. A memory belongs to an agent id in an origin: processes that share both share it,
// and it outlives them.
//
// The state is the ledgers, with the number of checkpoints. What the ledgers fold to is worked out beside them, so that an
// answer about the present costs the same however long the ledger is: it is neither compared nor stored.
type Domain struct {
	ledgers     *btree.Map[string, ledger] // by address
	total       int64                      // deltas in force, of all ledgers
	checkpoints int64                      // ever made

	histories map[string]*history // by address; what was folded so far, made from the ledgers when it is asked for
	processes kernel.Processes    // read in Decide alone: Apply must give the same state without it
	committed *schema.Type        // what Syscall.CommitDelta answers
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain without any memory. processes says which agent a process is.
func New(processes kernel.Processes) *Domain {
	d := &Domain{processes: processes, committed: schema.TypeOf[schema.CommitDeltaOutput]()}
	d.Reset()
	return d
}

// Reset forgets all memories, and the checkpoints.
func (d *Domain) Reset() {
	d.ledgers = &btree.Map[string, ledger]{}
	d.histories = make(map[string]*history)
	d.total, d.checkpoints = 0, 0
}

// Decide answers the syscalls of schema.Delta.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.CommitDeltaInput:
		return d.commit(call, in)
	case *schema.RollbackInput:
		return d.rollback(call, in)
	case *schema.DeltaDropInput:
		return kernel.Result{Data: []byte(`{"success":true}`)}, nil
	case *schema.CheckpointInput:
		return d.checkpoint(call, in)
	case *schema.GetStateInput:
		return d.state(call, in)
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply changes the memory as a decided command says. Syscall.Rollback changes nothing itself: its Delta.Drop did.
func (d *Domain) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.CommitDeltaInput:
		d.add(address(call.Origin, d.committedTo(call, in)), call.Tick, encode(in))
	case *schema.DeltaDropInput:
		d.drop(address(call.Origin, in.AgentID), in.ToTick)
	case *schema.CheckpointInput:
		d.checkpoints++
	}
}

// committedTo returns the agent of a decided Syscall.CommitDelta. Where the request names none, the answer does.
func (d *Domain) committedTo(call *kernel.Call, in *schema.CommitDeltaInput) string {
	if in.AgentID != nil {
		return *in.AgentID
	}
	out, err := d.committed.Decode(call.Data)
	if err != nil {
		panic("delta: answer of Syscall.CommitDelta: " + err.Message) // the journal holds what Decide never wrote
	}
	return out.(*schema.CommitDeltaOutput).AgentID
}

// add puts a delta into force. A history that nobody has asked for yet is left for later: replaying a journal folds
// nothing.
func (d *Domain) add(at string, tick int64, body string) {
	l, _ := d.ledgers.Get(at)
	if h := d.histories[at]; h != nil {
		h.add(body)
	}
	d.ledgers.Set(at, l.add(tick, body))
	d.total++
}

// drop takes the deltas after a tick out of force. Their numbers stay used.
func (d *Domain) drop(at string, toTick int64) {
	l, ok := d.ledgers.Get(at)
	if !ok {
		return
	}
	n := l.upTo(toTick)
	d.total -= int64(len(l.log) - n)
	l = l.cut(n)
	d.ledgers.Set(at, l)
	if h := d.histories[at]; h != nil {
		h.cut(l.log)
	}
}

// history returns what a memory's log folds to. It is kept for the next time, from Decide too: it can always be made
// again, so it is no part of the state.
func (d *Domain) history(at string, log []delta) *history {
	h := d.histories[at]
	if h == nil {
		h = newHistory(log)
		if len(log) > 0 {
			d.histories[at] = h
		}
	}
	return h
}

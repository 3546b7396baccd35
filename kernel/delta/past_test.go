package delta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
)

// agentMemory is a domain with one agent, driven as its actor does.
type agentMemory struct {
	t      testing.TB
	domain *delta.Domain
	inJSON []string // of the deltas in force
}

func newAgentMemory(t testing.TB) *agentMemory {
	return &agentMemory{t: t, domain: delta.New(domaintest.Table{process(1, "ada", home)})}
}

func (m *agentMemory) run(row *schema.Syscall, in any, tick int64) kernel.Result {
	m.t.Helper()
	call := &kernel.Call{Request: kernel.Request{Syscall: row, Input: in}, Decision: kernel.Decision{PID: 1, Origin: home, Moment: kernel.Moment{Tick: tick}}}
	result, err := m.domain.Decide(call)
	testkit.Must(m.t, err)
	if row.Kind == schema.KindCommand {
		call.Data = result.Data
		m.domain.Apply(call)
	}
	return result
}

func (m *agentMemory) commit(n int) {
	for range n {
		tick := len(m.inJSON) + 1
		value := fmt.Sprintf(`"%d of %p"`, tick, new(int))
		m.run(schema.SyscallCommitDelta.Syscall, &schema.CommitDeltaInput{Changes: map[string]schema.Value{"last": schema.Value(value)}}, int64(tick))
		m.inJSON = append(m.inJSON, value)
	}
}

func (m *agentMemory) rollback(to int) {
	m.run(schema.DeltaDrop.Syscall, &schema.DeltaDropInput{AgentID: "ada", ToTick: int64(to)}, 0)
	m.inJSON = m.inJSON[:to:to]
}

// look asks for the memory after that many deltas. It returns the computation that the actor leaves to a goroutine,
// and its expected result.
func (m *agentMemory) look(after int) (read func(context.Context) (kernel.Result, error), want string) {
	m.t.Helper()
	tick := int64(after)
	read = m.run(schema.SyscallGetState.Syscall, &schema.GetStateInput{AtTick: &tick}, 0).Read
	if read == nil {
		m.t.Fatalf("a memory of %d deltas was folded on the actor", after)
	}
	return read, fmt.Sprintf(`"state":{"last":%s}`, m.inJSON[after-1])
}

// TestStatesAreComputedAtOnce asks for states of a memory that changes meanwhile: each is that of its request, in
// whatever order they are computed, several at a time.
func TestStatesAreComputedAtOnce(t *testing.T) {
	t.Parallel()
	m := newAgentMemory(t)
	var work sync.WaitGroup
	look := func(after int) {
		read, want := m.look(after)
		work.Go(func() {
			got, err := read(t.Context())
			if err != nil || !bytes.Contains(got.Data, []byte(want)) || !bytes.Contains(got.Data, fmt.Appendf(nil, `"deltas":%d`, after)) {
				t.Errorf("after %d: %v, %s, want %s", after, err, got.Data, want)
			}
		})
	}
	for round := range 20 {
		m.commit(100 + 37*round)
		late, want := m.look(len(m.inJSON)) // computed after later changes
		for _, part := range []int{1, 2, 3} {
			look(len(m.inJSON) * part / 3)
		}
		m.rollback(len(m.inJSON) - 30*(round%3))
		look(len(m.inJSON))
		m.commit(5)
		look(len(m.inJSON) - 2)
		if round%2 == 0 {
			work.Wait()
		}
		if got, err := late(t.Context()); err != nil || !bytes.Contains(got.Data, []byte(want)) {
			t.Errorf("computed late: %v, %s, want %s", err, got.Data, want)
		}
	}
	work.Wait()
}

// TestNothingLongOnTheActor: after a start the actor folds none of a long memory, neither for a commit, nor for a
// rollback, nor for the state, even if the memory bounds the amounts.
func TestNothingLongOnTheActor(t *testing.T) {
	m := newAgentMemory(t)
	m.commit(20_000)
	restored := newAgentMemory(t)
	restored.inJSON = m.inJSON
	testkit.Must(t, m.domain.Snapshot()(restored.domain.Restore))
	// The fold of a delta takes at least one allocation.
	allocs := testing.AllocsPerRun(1, func() {
		restored.commit(1)
		restored.look(len(restored.inJSON))
		restored.look(len(restored.inJSON) / 2)
		restored.rollback(len(restored.inJSON) - 1)
	})
	if allocs > 1000 {
		t.Errorf("%v allocations on the actor", allocs)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	read, _ := restored.look(len(restored.inJSON))
	if _, err := read(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	if !schema.SyscallGetState.Syscall.Alone {
		t.Error("Syscall.GetState does not run alone, and so cannot be computed off the actor")
	}
}

package delta_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestModel runs random calls beside the model. At the end, a replay of the journal and a restored snapshot must give
// the same state and the same answers.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := newShell(r)
		memories := map[string]*memory{}
		of := func(pid int64) *memory {
			p := s.origins.Process(pid)
			if at := p.Origin + p.AgentID; memories[at] == nil {
				memories[at] = &memory{}
			}
			return memories[p.Origin+p.AgentID]
		}
		checkpoints := 0
		for range rapid.IntRange(1, 60).Draw(r, "calls") {
			s.tick += rapid.SampledFrom([]int64{0, 0, 1, 5}).Draw(r, "ticks")
			pid := rapid.Int64Range(1, 4).Draw(r, "pid")
			agent, m := s.origins.Process(pid).AgentID, of(pid)
			tick := rapid.Int64Range(0, s.tick).Draw(r, "tick")
			switch rapid.IntRange(0, 7).Draw(r, "what") {
			default:
				request := drawCommit(r)
				m.commit(r, s.tick, request)
				s.want(pid, "Syscall.CommitDelta", request, fmt.Sprintf(`{"agent_id":%q,"delta_seq":%d}`, agent, m.last))
			case 5:
				dropped := m.rollback(tick)
				s.want(pid, "Syscall.Rollback", fmt.Sprintf(`{"to_tick":%d}`, tick), fmt.Sprintf(`{"rolled_back_to":%d,"dropped":%d}`, tick, dropped))
			case 6:
				checkpoints++
				s.want(pid, "Syscall.Checkpoint", `{}`, fmt.Sprintf(`{"total_deltas":%d,"checkpoint_id":%d}`, len(m.deltas), checkpoints))
			case 7:
				checkpoints++
				s.want(0, "Syscall.Checkpoint", `{}`, fmt.Sprintf(`{"total_deltas":%d,"checkpoint_id":%d}`, total(memories), checkpoints))
			}
			wantMemory(s, pid, tick, m.fold(tick))
			wantMemory(s, pid, s.tick, m.fold(s.tick))
		}
		live := s.snapshot()
		replayed, restored := s.replay(), s.restored()
		if !bytes.Equal(live, replayed.snapshot()) {
			r.Fatal("replaying the journal gives another state")
		}
		if !bytes.Equal(live, restored.snapshot()) {
			r.Fatal("restoring a snapshot gives another state")
		}
		for _, pid := range []int64{1, 3, 4} {
			for tick := range s.tick + 1 {
				wantMemory(restored, pid, tick, of(pid).fold(tick))
			}
		}
		answer := fmt.Sprintf(`{"total_deltas":%d,"checkpoint_id":%d}`, total(memories), checkpoints+1)
		replayed.want(0, "Syscall.Checkpoint", `{}`, answer)
		restored.want(0, "Syscall.Checkpoint", `{}`, answer)
		s.domain.Reset()
		if rest := s.snapshot(); len(rest) > 0 {
			r.Fatalf("after Reset: %q", rest)
		}
		s.want(0, "Syscall.Checkpoint", `{}`, `{"total_deltas":0,"checkpoint_id":1}`)
	})
}

func total(memories map[string]*memory) (n int) {
	for _, m := range memories {
		n += len(m.deltas)
	}
	return n
}

// TestLongMemory commits and rolls back thousands of deltas, so that folds start from stops on the way, at every
// stride of a history.
func TestLongMemory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := newShell(r)
		m := &memory{}
		commit := func(n int) {
			for range n {
				s.tick++
				request := fmt.Sprintf(`{"changes":{"k%d":%d,"k%d":null},"resource_changes":{"r":0.1}}`, s.tick%7, s.tick, s.tick%5)
				m.commit(r, s.tick, request)
				call := s.request(1, s.origins.Process(1).Origin, "Syscall.CommitDelta", request)
				result, err := s.domain.Decide(call)
				if err != nil {
					r.Fatal(err)
				}
				s.journal.Apply(s.domain, call, result.Data)
			}
		}
		for range rapid.IntRange(1, 2).Draw(r, "rounds") {
			commit(rapid.SampledFrom([]int{1, 100, 1200}).Draw(r, "commits"))
			for range 3 {
				tick := rapid.Int64Range(0, s.tick).Draw(r, "tick")
				wantMemory(s, 1, tick, m.fold(tick))
			}
			tick := rapid.Int64Range(0, s.tick).Draw(r, "rollback")
			s.want(1, "Syscall.Rollback", fmt.Sprintf(`{"to_tick":%d}`, tick), fmt.Sprintf(`{"rolled_back_to":%d,"dropped":%d}`, tick, m.rollback(tick)))
			commit(rapid.IntRange(0, 70).Draw(r, "commits after"))
			wantMemory(s, 1, s.tick, m.fold(s.tick))
		}
		if !bytes.Equal(s.snapshot(), s.replay().snapshot()) {
			r.Fatal("replaying the journal gives another state")
		}
	})
}

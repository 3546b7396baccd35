package delta_test

import (
	"encoding/json"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// memory is one agent's memory in its simplest form.
type memory struct {
	last   int
	deltas []commit
}

// commit is one delta, in the form of its request.
type commit struct {
	tick                int64
	Changes             map[string]any     `json:"changes"`
	ResourceChanges     map[string]float64 `json:"resource_changes"`
	RelationshipChanges map[string]float64 `json:"relationship_changes"`
	GovernanceViolation bool               `json:"governance_violation"`
}

func (m *memory) commit(t rapid.TB, tick int64, request string) {
	t.Helper()
	c := commit{tick: tick}
	testkit.Must(t, json.Unmarshal([]byte(request), &c))
	m.last++
	m.deltas = append(m.deltas, c)
}

// rollback drops the deltas after a tick, and returns their number.
func (m *memory) rollback(tick int64) int {
	kept := m.upTo(tick)
	dropped := len(m.deltas) - len(kept)
	m.deltas = kept
	return dropped
}

func (m *memory) upTo(tick int64) (kept []commit) {
	for _, c := range m.deltas {
		if c.tick <= tick {
			kept = append(kept, c)
		}
	}
	return kept
}

// fold is the member memory of Syscall.GetState.
func (m *memory) fold(tick int64) map[string]any {
	kept := m.upTo(tick)
	if len(kept) == 0 {
		return nil
	}
	var state any = map[string]any{}
	resources, relationships, violations := map[string]any{}, map[string]any{}, 0.0
	for _, c := range kept {
		state = mergePatch(state, c.Changes)
		addUp(resources, c.ResourceChanges)
		addUp(relationships, c.RelationshipChanges)
		if c.GovernanceViolation {
			violations++
		}
	}
	return map[string]any{
		"state": state, "resources": resources, "relationships": relationships,
		"deltas": float64(len(kept)), "violations": violations,
	}
}

func addUp(sums map[string]any, changes map[string]float64) {
	for name, amount := range changes {
		have, _ := sums[name].(float64)
		sums[name] = have + amount
	}
}

// mergePatch is the function of RFC 7386, section 2.
func mergePatch(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for name, value := range old {
			merged[name] = value
		}
	}
	for name, value := range object {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = mergePatch(merged[name], value)
		}
	}
	return merged
}

// wantMemory compares the memory of a process with the model's.
func wantMemory(s *shell, pid, tick int64, want map[string]any) {
	s.Helper()
	answer, err := s.run(pid, "Syscall.GetState", fmt.Sprintf(`{"at_tick":%d}`, tick))
	if err != nil {
		s.Fatal(err)
	}
	var got struct {
		Memory map[string]any `json:"memory"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Memory); diff != "" {
		s.Fatalf("memory of pid %d at tick %d (-want +got):\n%s", pid, tick, diff)
	}
}

// drawCommit makes the data of a Syscall.CommitDelta.
func drawCommit(r *rapid.T) string {
	name := rapid.SampledFrom([]string{"a", "b", "c", `"`})
	amount := rapid.SampledFrom([]float64{0.1, -0.2, 1, 1e16, -1e16, 3e-5})
	amounts := rapid.MapOfN(name, amount, 0, 3)
	request := map[string]any{
		"changes":              drawObject(r, 3),
		"resource_changes":     amounts.Draw(r, "resources"),
		"relationship_changes": amounts.Draw(r, "relationships"),
		"governance_violation": rapid.Bool().Draw(r, "violation"),
	}
	for _, member := range []string{"changes", "resource_changes", "relationship_changes", "governance_violation"} {
		if rapid.IntRange(0, 3).Draw(r, "leave out "+member) == 0 {
			delete(request, member)
		}
	}
	data, err := schema.Marshal(request)
	if err != nil {
		r.Fatal(err)
	}
	return string(data)
}

func drawObject(r *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(r, "members") {
		object[rapid.SampledFrom([]string{"a", "b", "c", `"`}).Draw(r, "name")] = drawValue(r, depth-1)
	}
	return object
}

func drawValue(r *rapid.T, depth int) any {
	if depth > 0 && rapid.Bool().Draw(r, "object") {
		return drawObject(r, depth)
	}
	return rapid.SampledFrom([]any{nil, nil, 1.0, "x", false, []any{1.0, nil}, []any{}}).Draw(r, "value")
}

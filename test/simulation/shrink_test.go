package simulation_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// scenario are the parameters of a simulation.
type scenario struct {
	seed    uint64
	steps   int      // the most steps
	clients int      // the most clients at a time
	without []string // kinds of steps and calls that are left out
	breach  func(map[schema.Domain]kernel.Domain)
}

// kinds are the kinds of steps that a scenario can leave out, besides the types of errands.
var kinds = []string{
	"crash", "fault", "reset", "half-close", "flood", "again", "settle", "sleep", "connect", "ask", "answer", "cut", "full disk",
	"full store", "crowd", "restart", "bad start", "long", "Http.Fetch",
}

// drops reports whether the scenario leaves out a kind.
func (s *scenario) drops(kind string) bool { return slices.Contains(s.without, kind) }

// String returns the command that runs the scenario.
func (s *scenario) String() string {
	text := fmt.Sprintf("go test ./test/simulation -run TestSimulation -seed %d -steps %d -clients %d", s.seed, s.steps, s.clients)
	if len(s.without) > 0 {
		text += " -without " + strings.Join(s.without, ",")
	}
	return text
}

// failure is a scenario that fails, and its error.
type failure struct {
	scenario
	err error
}

// varies matches the parts of an error that differ between failures of the same kind.
var varies = regexp.MustCompile(`\{.*\}|\[.*\]|"[^"]*"|[a-z]?[0-9]+`)

// alike reports whether two errors are of the same kind.
func alike(a, b error) bool {
	return varies.ReplaceAllString(a.Error(), "") == varies.ReplaceAllString(b.Error(), "")
}

// shrink reduces a failing scenario as long as it fails in the same way: fewer clients, without single kinds of steps and calls, and fewer
// steps. The last step is always followed by settle.
func shrink(t *testing.T, f failure) failure {
	t.Helper()
	try := func(s scenario) bool {
		_, step, err := simulate(t, s, nil)
		if err == nil || !alike(err, f.err) {
			return false
		}
		s.steps = min(s.steps, step)
		f = failure{s, err}
		return true
	}
	for fewer := 1; fewer < f.clients; fewer++ {
		s := f.scenario
		if s.clients = fewer; try(s) {
			break
		}
	}
	calls := make([]string, len(errands))
	for i, e := range errands {
		calls[i] = e.typ
	}
	for _, kind := range slices.Concat(kinds, calls) {
		s := f.scenario
		s.without = append(slices.Clone(s.without), kind)
		try(s)
	}
	for low := 0; low+1 < f.steps; {
		s := f.scenario
		s.steps = (low + f.steps) / 2
		if !try(s) {
			low = s.steps
		}
	}
	return f
}

// forgetful does not apply every ninth Memory.Set.
type forgetful struct {
	kernel.Domain
	calls int
}

func (f *forgetful) Apply(call *kernel.Call) {
	if f.calls++; f.calls%9 != 0 {
		f.Domain.Apply(call)
	}
}

// TestShrinks checks that a shrunk scenario is smaller, fails in the same way, and is deterministic.
func TestShrinks(t *testing.T) {
	t.Parallel()
	s := scenario{seed: 1, steps: *steps, clients: *clients, breach: func(all map[schema.Domain]kernel.Domain) {
		all[schema.Memory] = &forgetful{Domain: all[schema.Memory]}
	}}
	_, step, err := simulate(t, s, nil)
	for err == nil && s.seed < 50 { // a seed passes if no ninth Memory.Set is read
		s.seed++
		_, step, err = simulate(t, s, nil)
	}
	if err == nil {
		t.Fatal("the planted fault was not found")
	}
	s.steps = step
	small := shrink(t, failure{s, err})
	t.Logf("%s\nshrunk from %d steps: %v", &small.scenario, step, small.err)
	if small.steps > step || small.clients > s.clients || len(small.without) < 5 {
		t.Errorf("%s was shrunk from %s", &small.scenario, &s)
	}
	var traces []string
	for range 2 {
		trace, step, err := simulate(t, small.scenario, nil)
		if err == nil || !alike(err, small.err) || step != small.steps {
			t.Errorf("step %d: %v, want step %d: %v", step, err, small.steps, small.err)
		}
		traces = append(traces, trace)
	}
	if traces[0] != traces[1] {
		t.Error("two runs of the shrunk scenario differ")
	}
}

package authority_test

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
)

// fewSequences is the default number of sequences. PWOS_SEQUENCES=100000 sets another number.
const fewSequences = 400

// manySequences is a number in which a command that is rarely denied is still denied dozens of times: the seeds are random, and in
// fewSequences such a command is denied about five times, and once in a hundred runs not at all.
const manySequences = 10 * fewSequences

// shards is the number of subtests, which run in parallel.
const shards = 4

func house() *config {
	return &config{pools: map[string]float64{"gpu": 1, "ram": 5}, mailbox: 2}
}

// TestSequences checks for random calls of the operator and its agents that each answer is what the rules require, that refused
// and repeated calls change nothing, that the final state is that of the model, and that a replay of the journal gives the same state.
func TestSequences(t *testing.T) {
	n := fewSequences
	if text := os.Getenv("PWOS_SEQUENCES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("PWOS_SEQUENCES is %q, want a number above 0", text)
		}
	}
	each := (n + shards - 1) / shards
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa(each), "rapid.nofailfile": "true", // a failure shows its steps and its seed
	} {
		testkit.Must(t, flag.Set(name, value))
	}
	t.Parallel()
	seen := &tally{}
	t.Cleanup(func() {
		if !t.Failed() {
			seen.report(t, n)
		}
	})
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			drawn := sequences() // a generator is not safe for concurrent use
			rapid.Check(t, func(r *rapid.T) {
				seen.runs.Add(1)
				if err := sequence(house(), drawn.Draw(r, "steps"), seen); err != nil {
					r.Fatal(err)
				}
			})
		})
	}
}

// tally counts the outcomes of each command, to detect commands that are not really tested.
type tally struct {
	runs  atomic.Int64 // number of sequences
	mu    sync.Mutex
	count [ops]map[int]int // by error code; 0: success
}

func (y *tally) add(op, code int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.count[op] == nil {
		y.count[op] = map[int]int{}
	}
	y.count[op][code]++
}

// report fails if fewer sequences ran than requested, which happens silently near the test's deadline, or, given enough sequences, if a
// command never succeeded, or never failed because of a missing right or an ended process.
func (y *tally) report(t *testing.T, n int) {
	t.Logf("%d sequences", y.runs.Load())
	if int(y.runs.Load()) < n && !testing.Short() {
		t.Errorf("%d sequences of %d ran: give the test more time", y.runs.Load(), n)
	}
	for op, codes := range y.count {
		t.Logf("command %d: %v", op, codes)
		if n >= manySequences && (codes[0] == 0 || codes[403]+codes[410] == 0) {
			t.Errorf("command %d never both succeeded and was denied in %d sequences: %v", op, n, codes)
		}
	}
}

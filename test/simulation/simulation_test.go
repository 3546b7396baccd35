package simulation_test

import (
	"flag"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone, with its steps in the log")
	steps   = flag.Int("steps", 300, "steps that a seed takes")
)

// seeds is how many are simulated.
const seeds = 200

// simulate runs a seed.
func simulate(t *testing.T, seed uint64, most int, log io.Writer) (trace string, step int, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { trace, step, err = run(seed, most, log) })
	return trace, step, err
}

// TestSimulation runs seeds. What one finds is found again with -seed.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		report(t, *oneSeed, os.Stderr)
		return
	}
	for seed := range uint64(seeds) {
		report(t, seed+1, nil)
	}
}

func report(t *testing.T, seed uint64, log io.Writer) {
	t.Helper()
	if _, step, err := simulate(t, seed, *steps, log); err != nil {
		t.Errorf("step %d: %v\ngo test ./test/simulation -run TestSimulation -seed %d -steps %d", step, err, seed, step)
	}
}

// TestReplays shows that a seed is one run.
func TestReplays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		seed++
		first, _, _ := simulate(t, seed, *steps, nil)
		again, _, _ := simulate(t, seed, *steps, nil)
		if first != again {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

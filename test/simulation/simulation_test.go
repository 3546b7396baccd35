package simulation_test

import (
	"flag"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone, with what happens in it on standard error")
	seeds   = flag.Uint64("seeds", uint64(testkit.Rounds(40, 80, 200)), "how many seeds are simulated, from 1 on")
	steps   = flag.Int("steps", 200, "steps that a seed takes at most")
	first   = flag.Bool("first", false, "stop at the first seed that fails")
	clients = flag.Int("clients", 4, "clients that there are at a time at most")
	without = flag.String("without", "", "kinds of steps and calls that are left out, such as crash,Ipc.Receive")
)

// simulate runs a scenario.
func simulate(t *testing.T, s scenario, log io.Writer) (trace string, step int, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { trace, step, err = run(s, log) })
	return trace, step, err
}

// TestSimulation runs a fixed number of seeds; with PWOS_SIMULATE=5m, new seeds for that duration. -seed repeats one of them.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		report(t, *oneSeed, os.Stderr)
		return
	}
	if s := os.Getenv("PWOS_SIMULATE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("PWOS_SIMULATE: %v", err)
		}
		begin := uint64(time.Now().UnixNano())
		seed := begin
		for start := time.Now(); time.Since(start) < d && !t.Failed(); seed++ {
			report(t, seed, nil)
		}
		t.Logf("%d seeds from %d on", seed-begin, begin)
		return
	}
	for seed := range *seeds {
		if *first && t.Failed() {
			return
		}
		report(t, seed+1, nil)
	}
}

// scenarioOf returns the scenario of a seed with the parameters of the flags.
func scenarioOf(seed uint64) scenario {
	s := scenario{seed: seed, steps: *steps, clients: *clients}
	if *without != "" {
		s.without = strings.Split(*without, ",")
	}
	return s
}

// report runs a seed. If it fails, report shrinks its scenario and reports the result.
func report(t *testing.T, seed uint64, log io.Writer) {
	t.Helper()
	s := scenarioOf(seed)
	_, step, err := simulate(t, s, log)
	if err == nil {
		return
	}
	s.steps = step
	f := failure{s, err}
	if log == nil {
		f = shrink(t, f)
	}
	t.Errorf("seed %d, step %d: %v\n%s", seed, f.steps, f.err, &f.scenario)
}

// TestReplays checks that a seed is deterministic.
func TestReplays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testkit.Rounds(4, 8, 20)) {
		once, _, _ := simulate(t, scenarioOf(seed+1), nil)
		again, _, _ := simulate(t, scenarioOf(seed+1), nil)
		if once != again {
			t.Errorf("seed %d: two runs differ", seed+1)
		}
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400) // collecting the disks in memory would otherwise take a third of the time
	os.Exit(testkit.Main(m))
}

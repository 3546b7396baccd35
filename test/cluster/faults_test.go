package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// fault breaks something, and returns a function that repairs it.
type fault struct {
	name         string
	hosts, nodes int  // how many must exist
	deposes      bool // it may last until the other host leads
	begin        func(r *rig, rng *rand.Rand) (repair func())
}

var faults = []fault{
	{"the leader is killed", 1, 1, false, func(r *rig, _ *rand.Rand) func() {
		r.leader().kill(r.t)
		return func() {}
	}},
	{"the host of the leader is lost", 2, 1, true, func(r *rig, _ *rand.Rand) func() {
		h := r.leader()
		h.down = true
		h.kill(r.t)
		return func() { h.down = false }
	}},
	{"the leader is shut down", 2, 1, true, func(r *rig, _ *rand.Rand) func() {
		h := r.leader()
		h.down = true
		h.signal(r.t, syscall.SIGTERM)
		return func() { h.down = false }
	}},
	{"the leader is stopped", 1, 1, true, func(r *rig, _ *rand.Rand) func() { return r.stopped(r.leader()) }},
	{"the standby is killed", 2, 1, false, func(r *rig, _ *rand.Rand) func() {
		r.other(r.leader()).kill(r.t)
		return func() {}
	}},
	{"the standby is stopped", 2, 1, false, func(r *rig, _ *rand.Rand) func() { return r.stopped(r.other(r.leader())) }},
	{"both hosts are killed, and the leader is away", 2, 1, true, func(r *rig, _ *rand.Rand) func() {
		h := r.leader()
		h.down = true
		for _, each := range r.hosts {
			each.kill(r.t)
		}
		return func() { h.down = false }
	}},
	{"both hosts are stopped", 2, 1, false, func(r *rig, _ *rand.Rand) func() {
		first, second := r.stopped(r.hosts[0]), r.stopped(r.hosts[1])
		return func() { first(); second() }
	}},
	{"a node is killed", 1, 1, false, func(r *rig, rng *rand.Rand) func() { return r.without(r.nodes[rng.IntN(len(r.nodes))]) }},
	{"a node is stopped", 1, 1, false, func(r *rig, rng *rand.Rand) func() { return r.frozen(r.nodes[rng.IntN(len(r.nodes))]) }},
	{"all nodes are killed", 1, 2, false, func(r *rig, _ *rand.Rand) func() { return r.without(r.nodes...) }},
	{"all nodes are stopped", 1, 2, false, func(r *rig, _ *rand.Rand) func() { return r.frozen(r.nodes...) }},
	{"everything is killed", 1, 1, false, func(r *rig, _ *rand.Rand) func() {
		repair := r.without(r.nodes...)
		for _, h := range r.hosts {
			h.kill(r.t)
		}
		return repair
	}},
	{"a link of the leader", 1, 1, false, func(r *rig, rng *rand.Rand) func() {
		links := r.leader().links
		return broken(rng, links[rng.IntN(len(links))])
	}},
	{"the leader is cut off", 2, 1, true, func(r *rig, _ *rand.Rand) func() { return cut(r.leader().links...) }},
	{"all links of the leader", 1, 1, true, func(r *rig, rng *rand.Rand) func() { return broken(rng, r.leader().links...) }},
	{"all links of the standby", 2, 1, false, func(r *rig, rng *rand.Rand) func() { return broken(rng, r.other(r.leader()).links...) }},
	{"a link between nodes", 1, 2, false, func(r *rig, rng *rand.Rand) func() { return broken(rng, r.nodes[len(r.nodes)-1].peers[0]) }},
	{"all links between nodes", 1, 2, false, func(r *rig, rng *rand.Rand) func() {
		var all []*link
		for _, n := range r.nodes {
			all = append(all, n.peers...)
		}
		return broken(rng, all...)
	}},
}

// stopped pauses a host for a while.
func (r *rig) stopped(h *host) (repair func()) {
	h.signal(r.t, syscall.SIGSTOP)
	return func() { h.signal(r.t, syscall.SIGCONT) }
}

// without kills nodes.
func (r *rig) without(nodes ...*node) (repair func()) {
	for _, n := range nodes {
		n.kill(r.t)
	}
	return func() {
		for _, n := range nodes {
			if n.away {
				n.start(r.t)
			}
		}
	}
}

// frozen pauses nodes for a while.
func (r *rig) frozen(nodes ...*node) (repair func()) {
	for _, n := range nodes {
		if !n.away {
			n.process.Signal(r.t, syscall.SIGSTOP)
		}
	}
	return func() {
		for _, n := range nodes {
			if !n.away {
				n.process.Signal(r.t, syscall.SIGCONT)
			}
		}
	}
}

// broken puts links into a mode by chance.
func broken(rng *rand.Rand, links ...*link) (repair func()) {
	return into(delays+mode(rng.IntN(int(modes-delays))), links)
}

// cut has links drop everything.
func cut(links ...*link) (repair func()) { return into(swallow, links) }

func into(m mode, links []*link) (repair func()) {
	for _, l := range links {
		l.set(m)
	}
	return func() {
		for _, l := range links {
			l.set(passes)
		}
	}
}

// takenOver waits until another host leads than before a fault.
func (r *rig) takenOver(limit time.Duration, other *host) bool {
	r.t.Helper()
	return r.await(limit, r.acknowledged(other, 5))
}

// some breaks one or two things for a while.
func (r *rig) some(rng *rand.Rand) (what string) {
	var names []string
	var repairs []func()
	deposes, other := false, r.other(r.leader())
	for range 1 + rng.IntN(8)/6 {
		f := faults[rng.IntN(len(faults))]
		for len(r.hosts) < f.hosts || len(r.nodes) < f.nodes {
			f = faults[rng.IntN(len(faults))]
		}
		names, repairs = append(names, f.name), append(repairs, f.begin(r, rng))
		deposes = deposes || f.deposes
	}
	switch {
	case deposes && other != nil && rng.IntN(3) > 0:
		if r.takenOver(4*r.lease, other) {
			names = append(names, "and the standby leads")
		}
	case rng.IntN(3) == 0: // long enough that the leader gives up
		r.await(time.Duration(rng.Int64N(int64(2*r.lease))), func() bool { return false })
	default:
		r.await(time.Duration(50+rng.IntN(900))*time.Millisecond, func() bool { return false })
	}
	for _, repair := range repairs {
		repair()
	}
	return strings.Join(names, ", ")
}

// disk replaces the disk of a node with an older copy. The leader, which must run, sends the missing entries again.
func (r *rig) disk(rng *rand.Rand) (what string) {
	n, leader := r.nodes[rng.IntN(len(r.nodes))], r.leader()
	restore := n.older(r.t)
	r.healed()
	if r.leader() != leader {
		return "the disk of a node was copied"
	}
	restore()
	return "the disk of a node is an older copy"
}

// named returns a fault of the table.
func named(name string) fault {
	for _, f := range faults {
		if f.name == name {
			return f
		}
	}
	panic("no fault is named " + name)
}

// run configures how TestQuorumFaults and TestPlanted break a rig.
type run struct {
	setup
	seed   uint64
	length time.Duration // of random faults
	script []string      // the first faults, each until the other host leads if it deposes
}

// run returns the findings of the oracle.
func (s run) run(t *testing.T) []string {
	t.Helper()
	t.Logf("seed %d, %d hosts, %d nodes, lease %v, %s", s.seed, s.hosts, s.nodes, s.lease, s.daemon)
	rng := rand.New(rand.NewPCG(s.seed, 0))
	r := newRig(t, s.setup)
	end := r.load(s.seed)
	r.healed()
	say := func(what string) {
		t.Logf("%8v: %s; %d acknowledged, host %d leads", time.Since(r.history.begun).Round(time.Millisecond), what, r.history.acknowledged.Load(), r.leader().index)
		r.history.generation.Add(1)
	}
	for _, name := range s.script {
		f, other := named(name), r.other(r.leader())
		repair := f.begin(r, rng)
		if f.deposes && other != nil && !r.takenOver(testkit.Patience, other) {
			return []string{name + ", and the standby does not lead"}
		}
		repair()
		r.healed()
		say(name)
	}
	for end := time.Now().Add(s.length); time.Now().Before(end); {
		what := ""
		if rng.IntN(20) == 0 {
			what = r.disk(rng)
		} else {
			what = r.some(rng)
		}
		r.healed()
		say(what)
	}
	r.readAll()
	end()
	r.stop()
	found := append(r.check(), r.panicked()...)
	r.forge()
	return found
}

// long returns the duration of random faults: with PWOS_LONG=1 30 minutes, or that of PWOS_LONG_FOR.
func long(t *testing.T) time.Duration {
	if os.Getenv("PWOS_LONG") != "1" {
		return 0
	}
	if text := os.Getenv("PWOS_LONG_FOR"); text != "" {
		return testkit.Value(time.ParseDuration(text))(t)
	}
	return 30 * time.Minute
}

// TestQuorumFaults breaks hosts, nodes and links, in the order of a seed, while clients set and get. At the end, every
// acknowledged set is in the journal of the leader, as the entry that its answer named; no entry answers two sets, and none
// was done twice; the stream equals that journal; entries that hosts have set aside include none that they acknowledged;
// and the clients' history of each key is linearizable. A forged stream is detected.
//
// With PWOS_LONG=1 faults are random, with a new seed or that of PWOS_SEED, and unsynced data is lost as in a power cut.
func TestQuorumFaults(t *testing.T) {
	for _, s := range []run{
		{setup: setup{hosts: 1, nodes: 3, lease: 5 * time.Second}, script: []string{"a node is killed", "the leader is killed"}},
		{setup: setup{hosts: 2, nodes: 1, lease: 3 * time.Second}, script: []string{"the host of the leader is lost", "the leader is stopped"}},
		{setup: setup{hosts: 2, nodes: 3, lease: 5 * time.Second}},
	} {
		t.Run(fmt.Sprintf("%d-%d", s.hosts, s.nodes), func(t *testing.T) {
			t.Parallel()
			if s.length = long(t); s.length == 0 && s.script == nil {
				t.Skip("needs PWOS_LONG=1")
			}
			s.daemon = testkit.Program(t, "pwosd")
			if s.length > 0 {
				s.seed, s.script = uint64(time.Now().UnixNano()), nil
				if text := os.Getenv("PWOS_SEED"); text != "" {
					testkit.Value(fmt.Sscan(text, &s.seed))(t)
				}
				dir := testkit.Dir(t)
				testkit.Must(t, testkit.Build(dir, []string{"-tags", "pwos_powercut"}, "github.com/promptware-os/pwos/cmd/pwosd"))
				s.daemon = dir + "/pwosd"
			}
			for _, found := range s.run(t) {
				t.Error(found)
			}
		})
	}
}

// TestClocks is TestQuorumFaults with hosts whose clocks for the lease are hours apart, and run at rates that differ by a fifth: the standby's is
// the faster one, then the leader's.
func TestClocks(t *testing.T) {
	t.Parallel()
	s := run{
		setup:  setup{hosts: 2, nodes: 1, lease: 5 * time.Second, clocks: []string{"100", "120"}},
		script: slices.Concat(slices.Repeat([]string{"the leader is stopped"}, 6), slices.Repeat([]string{"the leader is cut off"}, 2)),
	}
	if s.length = long(t); s.length == 0 {
		t.Skip("needs PWOS_LONG=1")
	}
	s.seed = uint64(time.Now().UnixNano())
	dir := testkit.Dir(t)
	testkit.Must(t, testkit.Build(dir, []string{"-tags", "pwos_clock"}, "github.com/promptware-os/pwos/cmd/pwosd"))
	s.daemon = dir + "/pwosd"
	for _, found := range s.run(t) {
		t.Error(found)
	}
}

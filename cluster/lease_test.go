package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

// leaseTerm is the term in these tests, whose clocks are advanced by hand.
const leaseTerm = 15 * time.Second

// clock is the clock of a host, with a rate and a start time.
type clock struct {
	real *time.Duration
	rate float64
	at   time.Duration
}

func (c clock) now() time.Duration { return c.at + time.Duration(float64(*c.real)*c.rate) }

// TestLeaseClocks shows that no two hosts hold a lease at the same time on clocks that are an hour apart and whose rates
// differ by a fifth, whenever the leader is cut off, or paused and resumed, and the standby takes over.
func TestLeaseClocks(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	m := join(t, b, "alpha", key)
	yes := func() bool { return true }
	real := new(time.Duration)
	for i, rates := range [][2]float64{{1, 1}, {1, 1.2}, {1.2, 1}, {0.9, 1.08}} {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		first, second := clock{real, rates[0], 0}, clock{real, rates[1], time.Hour}
		name := fmt.Sprintf("alpha-%d", i)
		options := func(c clock) cluster.LeaseOptions {
			return cluster.LeaseOptions{Kernel: "alpha", Replicas: 1, Term: leaseTerm, Clock: c.now}
		}
		epoch := int64(10*i + 1)
		leader := cluster.NewLease(m.js, options(first), name+"-first", epoch, cluster.Seen{}, yes)
		watch := cluster.NewWatch(m.js, options(second))
		var next *cluster.Lease
		cutOff := *real + 20*leaseTerm + time.Duration(rng.Int64N(int64(leaseTerm)))
		held := 0
		for next == nil || !next.Held() {
			*real += time.Duration(rng.Int64N(int64(leaseTerm / 5)))
			if *real < cutOff {
				testkit.Must(t, leader.Renew(testkit.Context(t)))
			}
			if leader.Held() {
				held++
			}
			if next == nil {
				seen, expired, err := watch.Look(testkit.Context(t))
				testkit.Must(t, err)
				if expired {
					next = cluster.NewLease(m.js, options(second), name+"-second", epoch+1, seen, yes)
				}
			}
			if next != nil {
				testkit.Must(t, next.Renew(testkit.Context(t)))
			}
			if *real > cutOff+10*leaseTerm {
				t.Fatalf("%v: no host leads", rates)
			}
			if leader.Held() && next != nil && next.Held() {
				t.Fatalf("%v: two hosts hold the lease %v after the cut", rates, *real-cutOff)
			}
		}
		if held < 10 {
			t.Errorf("%v: the leader held the lease at %d looks only", rates, held)
		}
		// The old leader is back, and does not get the lease.
		for range 10 {
			if err := leader.Renew(testkit.Context(t)); err == nil && leader.Held() {
				t.Fatalf("%v: the host of the epoch before holds the lease again", rates)
			}
			*real += leaseTerm / 5
			testkit.Must(t, next.Renew(testkit.Context(t)))
		}
	}
}

// TestLeaseByHand shows that a host that is made the leader while the previous one still runs waits until that one can no
// longer answer.
func TestLeaseByHand(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	m := join(t, testbus.Start(t, line), "alpha", key)
	real, standbys := new(time.Duration), true
	options := cluster.LeaseOptions{Kernel: "alpha", Replicas: 1, Term: leaseTerm, Clock: clock{real, 1, 0}.now}
	some := func() bool { return standbys }
	leader := cluster.NewLease(m.js, options, "first", 1, cluster.Seen{}, some)
	if leader.Held() {
		t.Error("a lease is held that was not written")
	}
	testkit.Must(t, leader.Renew(testkit.Context(t)))
	if !leader.Held() {
		t.Error("the first lease of a kernel is not held at once")
	}
	*real += time.Second
	next := cluster.NewLease(m.js, options, "second", 2, cluster.Seen{}, some)
	for *real < time.Second+leaseTerm {
		testkit.Must(t, next.Renew(testkit.Context(t)))
		_ = leader.Renew(testkit.Context(t)) // fails
		if next.Held() {
			t.Fatalf("the lease is held at %v", *real)
		}
		*real += time.Second
	}
	testkit.Must(t, next.Renew(testkit.Context(t)))
	if !next.Held() || leader.Held() {
		t.Errorf("held: %v, by the host before: %v", next.Held(), leader.Held())
	}
	// A host that starts again does not wait for itself.
	again := cluster.NewLease(m.js, options, "second", 2, cluster.Seen{}, some)
	testkit.Must(t, again.Renew(testkit.Context(t)))
	if !again.Held() {
		t.Error("a host that starts again waits for its own lease")
	}
	// Nor does it wait for a host that has ended cleanly.
	testkit.Must(t, again.Release(testkit.Context(t)))
	back := cluster.NewLease(m.js, options, "first", 3, cluster.Seen{}, some)
	testkit.Must(t, back.Renew(testkit.Context(t)))
	if !back.Held() {
		t.Error("a host waits for one that has released its lease")
	}
	// Without another host that may lead, the lease is not needed.
	standbys = false
	alone := cluster.NewLease(m.js, options, "third", 4, cluster.Seen{}, some)
	if !alone.Held() {
		t.Error("a host without a standby waits for a lease")
	}
}

// TestAnswersInLease shows that an answer of JetStream that a member had sent to the lease of another kernel does not stop the leader,
// and that a leader whose lease has ended meanwhile waits for a term, since a standby may have written the entry that was replaced.
func TestAnswersInLease(t *testing.T) {
	t.Parallel()
	_, _, _, alpha, beta := copiedBeside(t)
	real := new(time.Duration)
	leader := cluster.NewLease(alpha.js, cluster.LeaseOptions{Kernel: "alpha", Replicas: 1, Term: leaseTerm, Clock: clock{real, 1, 0}.now},
		"first", 1, cluster.Seen{}, func() bool { return true })
	testkit.Must(t, leader.Renew(testkit.Context(t)))
	watch := cluster.NewWatch(alpha.js, cluster.LeaseOptions{Kernel: "alpha", Replicas: 1, Term: leaseTerm, Clock: clock{real, 1.2, 0}.now})
	disturb := func() {
		t.Helper()
		kv := testkit.Value(alpha.js.KeyValue(testkit.Context(t), cluster.LeaseBucket("alpha")))(t)
		before := testkit.Value(kv.Get(testkit.Context(t), "leader"))(t).Revision()
		testkit.Must(t, beta.conn.PublishRequest("$JS.API.INFO", cluster.LeaseSubject("alpha"), nil))
		testkit.Eventually(t, "the answer has replaced the lease", func() bool {
			return testkit.Value(kv.Get(testkit.Context(t), "leader"))(t).Revision() > before
		})
		if seen, expired, err := watch.Look(testkit.Context(t)); err != nil || expired || !seen.Replaced() {
			t.Errorf("a standby sees %+v, expired %v, %v", seen, expired, err)
		}
	}
	for range 20 {
		*real += leaseTerm / 5
		disturb()
		testkit.Must(t, leader.Renew(testkit.Context(t))) // a second attempt later would be too late if the member repeats it
		if !leader.Held() {
			t.Fatal("the leader has lost its lease")
		}
	}
	*real += leaseTerm
	disturb()
	if leader.Renew(testkit.Context(t)) == nil {
		t.Error("a lease that has ended is renewed over an entry that was not read")
	}
	ended := *real
	for *real < ended+2*leaseTerm {
		testkit.Must(t, leader.Renew(testkit.Context(t)))
		if held := leader.Held(); held != (*real >= ended+leaseTerm) {
			t.Fatalf("%v after its lease had ended: held is %v", *real-ended, held)
		}
		*real += leaseTerm / 5
	}
}

package crash_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// message is a message as its receiver sees it.
type message struct {
	ID          int64 `json:"msg_id"`
	Payload     int   `json:"payload"`
	Redelivered bool  `json:"redelivered"`
}

// receiver is a process to which one sender sends the numbers 0, 1, 2 and so on, and its way of receiving them.
type receiver struct {
	place *testkit.Place
	pid   int64
	take  func(*receiver, *client, *rand.Rand) error

	sent  int // lower numbers were sent, each with a different key
	told  int // lower numbers are known to be DELIVERED
	calls int // answered receives
	last  int64
	seen  map[int]int  // how often each number arrived
	acked map[int]bool // numbers whose acknowledgment is known to be journaled

	mu     sync.Mutex
	faults []error
}

// fault records a violation. Sender and receiver both call it.
func (r *receiver) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// TestDelivery kills the daemon while agents send and receive. A message that was acknowledged as DELIVERED is received
// exactly once by a process that receives with a key and repeats the call after the kill; at least once by one that gets it
// pushed and acknowledges it, also if the receiver dies instead, and never again after the acknowledgment was answered; at
// most once by one that gets it pushed and does not acknowledge.
func TestDelivery(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(4, 4))
	p := newPlace(t)
	d := daemonAt(t, p).Start(t)
	t.Cleanup(func() { d.Kill(t) })
	var all []*receiver
	takes := []func(*receiver, *client, *rand.Rand) error{(*receiver).receive, (*receiver).acknowledge, (*receiver).follow}
	for i := range 2 * len(takes) {
		all = append(all, newReceiver(t, p, i, takes[i%len(takes)]))
	}
	const kills = 12
	for range kills {
		var load sync.WaitGroup
		for _, r := range all {
			own := rand.New(rand.NewPCG(chance.Uint64(), 1))
			load.Go(func() { r.send(func(int) bool { return true }) })
			load.Go(func() { r.run(own, false) })
		}
		wait(time.Duration(chance.Int64N(int64(250 * time.Millisecond))))
		d.Kill(t)
		load.Wait()
		d = daemonAt(t, p).Start(t)
	}
	var end sync.WaitGroup
	for _, r := range all {
		end.Go(func() { r.send(func(n int) bool { return n < r.sent }) }) // repeat the messages without an answer
	}
	end.Wait()
	for _, r := range all {
		r.finish(t)
		r.run(chance, true)
		r.judge(t, kills)
	}
}

func newReceiver(t *testing.T, p *testkit.Place, n int, take func(*receiver, *client, *rand.Rand) error) *receiver {
	t.Helper()
	c, err := dial(p)
	testkit.Must(t, err)
	defer c.end(nil)
	var out struct {
		ChildPID int64 `json:"child_pid"`
	}
	testkit.Must(t, c.call("command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"receiver-%d","capabilities":{"allowed_syscalls":["*"]}}`, n), &out))
	return &receiver{place: p, pid: out.ChildPID, take: take, seen: make(map[int]int), acked: make(map[int]bool)}
}

// send sends numbers while more is true, from the first whose answer is unknown, until the connection breaks.
func (r *receiver) send(more func(n int) bool) {
	c, err := dial(r.place)
	if err != nil {
		return // killed already
	}
	defer c.end(nil)
	for n := r.told; more(n); n++ {
		r.sent = max(r.sent, n+1)
		err := c.write(frame("command", "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%d}`, r.pid, n), fmt.Sprintf("%d-%d", r.pid, n)))
		if err != nil {
			return
		}
		a, err := c.next()
		if err != nil {
			return
		}
		if a.Kind != "reply" {
			r.fault("sending %d: %s", n, a.Data)
			return
		}
		r.told = n + 1
	}
}

// final is the last message to each receiver, which is not a number of its sender.
const final = -1

// finish sends the final message, after which the mailbox is empty.
func (r *receiver) finish(t *testing.T) {
	t.Helper()
	c, err := dial(r.place)
	testkit.Must(t, err)
	defer c.end(nil)
	var out struct {
		Status string `json:"status"`
	}
	if err := c.call("command", "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%d}`, r.pid, final), &out); err != nil || out.Status != "DELIVERED" {
		t.Fatalf("the final message: %+v, %v", out, err)
	}
}

// errDrained says that the final message has arrived.
var errDrained = errors.New("nothing is left")

// run receives messages until the daemon is killed, or until the final one if drain is true.
func (r *receiver) run(chance *rand.Rand, drain bool) {
	for {
		c, err := dial(r.place)
		if err == nil {
			for err == nil {
				err = r.take(r, c, chance)
			}
			_ = c.end(nil)
		}
		if err == errDied {
			continue
		}
		if drain && err != errDrained {
			r.fault("before the final message: %v", err)
		}
		return
	}
}

// errDied is the receiver's own death, after which it continues.
var errDied = errors.New("the receiver has died")

// judge compares what arrived with what was acknowledged as delivered.
func (r *receiver) judge(t *testing.T, kills int) {
	t.Helper()
	for _, err := range r.faults {
		t.Errorf("pid %d: %v", r.pid, err)
	}
	lost, again := 0, 0
	for n := range r.told {
		switch {
		case r.seen[n] == 0:
			lost++
		case r.seen[n] > 1:
			again++
		}
	}
	t.Logf("pid %d: %d delivered, %d lost, %d delivered again, %d acknowledged", r.pid, r.told, lost, again, len(r.acked))
	switch following := len(r.acked) == 0 && r.calls == 0; {
	case r.told < kills:
		t.Errorf("only %d messages were sent: too few for the kills to show anything", r.told)
	case following && (again > 0 || lost > kills*32):
		t.Errorf("pid %d: %d of the messages were delivered again, %d are lost", r.pid, again, lost)
	case !following && lost > 0, r.calls > 0 && again > 0:
		t.Errorf("pid %d: %d of the messages are lost, %d were delivered again", r.pid, lost, again)
	}
}

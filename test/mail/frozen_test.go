package mail_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// stream sends numbered messages as the operator of alpha to a process of beta, each once, and records what it was told.
type stream struct {
	reader    int64
	next      int
	accepted  map[string]bool // payloads that are DELIVERED or QUEUED
	refused   map[string]error
	delivered *atomic.Int64 // of all streams
}

// mostEach is how many messages a stream sends in a round: fewer than a mailbox holds.
const mostEach = 900

// run sends until stop is closed.
func (s *stream) run(ctx context.Context, alpha dialer, stop <-chan struct{}) error {
	c, err := alpha.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s.accepted, s.refused = map[string]bool{}, map[string]error{}
	for range mostEach {
		select {
		case <-stop:
			return nil
		default:
		}
		s.next++
		payload := fmt.Sprint(s.next)
		in := &schema.SendMsgInput{ReceiverPID: s.reader, ReceiverKernel: new("beta"), Payload: schema.Value(payload)}
		switch out, err := client.Call(ctx, c, schema.SyscallSendMsg, in); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.refused[payload] = err
		default:
			s.accepted[payload] = true
			if out.Status == schema.MailDelivered {
				s.delivered.Add(1)
			}
		}
	}
	<-stop
	return nil
}

// check compares what the reader has received with what was accepted and refused.
func (s *stream) check(ctx context.Context, t *testing.T, leader dialer) (n int) {
	t.Helper()
	seen := map[string]int{}
	for len(seen) < len(s.accepted) {
		messages, err := receive(ctx, leader, s.reader)
		if err != nil {
			t.Fatalf("pid %d: %d of %d messages: %v", s.reader, len(seen), len(s.accepted), err)
		}
		for _, m := range messages {
			seen[string(m.Payload)]++
		}
	}
	for payload, times := range seen {
		if times != 1 || !s.accepted[payload] {
			t.Errorf("message %s of pid %d arrived %d times; accepted %v, refused with %v", payload, s.reader, times, s.accepted[payload], s.refused[payload])
		}
	}
	for payload, err := range s.refused {
		if !errors.Is(err, fault.ClusterFull) {
			t.Errorf("message %s of pid %d was refused: %v", payload, s.reader, err)
		}
	}
	return len(seen)
}

// TestMailFrozen: the host that leads the receiving kernel is frozen under load until the other one leads, and then woken. It answers nothing:
// each message that was accepted arrives once, and none that was refused. PWOS_LONG=1 does it 20 times.
func TestMailFrozen(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(2, 2, 20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds)*testkit.Patience)
	defer cancel()
	alpha, leader, other := &site{name: "alpha"}, &site{name: "beta"}, &site{name: "beta"}
	lines := []string{alpha.home(t, mayRun), leader.home(t, mayRun), other.home(t, "standby")}
	b := startBus(t, lines...)
	alpha.configure(t, b, lines, "")
	quorum := fmt.Sprintf(`, acknowledge = "quorum", lease = "%ds"`, testkit.Rounds(2, 5, 5))
	leader.configure(t, b, lines, quorum)
	alpha.start(t)
	leader.start(t)
	for _, s := range []*site{leader, other} {
		s.configure(t, b, lines, quorum+", standby = true")
	}
	other.launch(t)
	delivered := new(atomic.Int64)
	var streams []*stream
	for i := range 6 {
		streams = append(streams, &stream{reader: spawnAt(ctx, t, leader, fmt.Sprint("reader", i)), delivered: delivered})
	}
	more := func(what string, n int64) {
		t.Helper()
		target := delivered.Load() + n
		testkit.Eventually(t, what, func() bool { return delivered.Load() >= target })
	}
	total := 0
	for round := range rounds {
		stop := make(chan struct{})
		var all sync.WaitGroup
		for _, s := range streams {
			all.Go(func() {
				if err := s.run(ctx, alpha, stop); err != nil {
					t.Error(err)
				}
			})
		}
		more("messages are delivered", 20)
		leader.process.Signal(t, syscall.SIGSTOP)
		more("the other host delivers messages", 20)
		leader.process.Signal(t, syscall.SIGCONT)
		testkit.Receive(t, leader.process.Ended(), "the end of the host that was woken")
		close(stop)
		all.Wait()
		for _, s := range streams {
			total += s.check(ctx, t, other)
		}
		leader, other = other, leader
		other.launch(t)
		t.Logf("round %d: %d messages arrived", round, total)
	}
}

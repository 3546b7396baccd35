package unixsock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// clock is a connection that only remembers its deadline.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
	return nil
}

func (c *clock) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// interrupted counts those of conns whose deadline has been put into the past.
func interrupted(conns []*clock) (n int) {
	for _, conn := range conns {
		if conn.deadline().Before(time.Now()) {
			n++
		}
	}
	return n
}

// silence lets n silent connections of the process pid into gate.
func silence(t *testing.T, gate *unixsock.Gate, n, pid int) []*clock {
	t.Helper()
	conns := make([]*clock, n)
	for i := range conns {
		conns[i] = &clock{}
		_, err := gate.Enter(t.Context(), conns[i], pid)
		must(t, err)
	}
	return conns
}

func TestGateBoundsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, conn := unixsock.NewGate(), &clock{}
		v, err := gate.Enter(t.Context(), conn, 1)
		must(t, err)
		if got, want := conn.deadline(), time.Now().Add(unixsock.AuthTimeout); !got.Equal(want) {
			t.Errorf("deadline is %v, want %v", got, want)
		}
		must(t, gate.Leave(v, true))
		if !conn.deadline().IsZero() {
			t.Errorf("deadline is still %v", conn.deadline())
		}
	})
}

// A burst of honest clients is let through one after the other; none loses its place to another, however slow the
// machine is, be they one process's or a thousand's.
func TestGateLetsABurstThrough(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]func(i int) int{
		"of one process":     func(int) int { return 1 },
		"of a thousand":      func(i int) int { return i },
		"of a few processes": func(i int) int { return i % 5 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gate := unixsock.NewGate()
				var wait sync.WaitGroup
				for i := range 1000 { // as they are accepted
					v, err := gate.Enter(t.Context(), &clock{}, process(i))
					must(t, err)
					if n := gate.Waiting(); n > unixsock.AuthWaiting {
						t.Fatalf("%d wait at once", n)
					}
					wait.Go(func() {
						time.Sleep(time.Duration(1+i%unixsock.AuthWaiting) * 10 * time.Millisecond) // fake time
						if err := gate.Leave(v, true); err != nil {
							t.Errorf("an honest client was told: %v", err)
						}
					})
				}
				wait.Wait()
			})
		})
	}
}

// A thousand silent connections of another process cost an honest client less than two seconds. From then on it is not
// their victim, however many more there are.
func TestGateServesBehindSilentConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := unixsock.NewGate(), time.Now()
		silent := silence(t, gate, 1000, 1)
		honest, err := gate.Enter(t.Context(), &clock{}, 2)
		must(t, err)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v to get in", took)
		}
		if got, want := interrupted(silent), len(silent)-unixsock.AuthWaiting+1; got != want {
			t.Errorf("%d silent ones were interrupted, want %d", got, want)
		}
		silence(t, gate, 1000, 1)
		must(t, gate.Leave(honest, true))
	})
}

// Where no process has more than the others, the one that has been there longest goes.
func TestGateEvictsTheOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := unixsock.NewGate(), time.Now()
		first, err := gate.Enter(t.Context(), &clock{}, 0)
		must(t, err)
		for pid := 1; pid <= unixsock.AuthWaiting; pid++ {
			time.Sleep(time.Millisecond) // fake time
			silence(t, gate, 1, pid)
		}
		if err := gate.Leave(first, false); !errors.Is(err, unixsock.ErrEvicted) {
			t.Errorf("the first was told %v, want ErrEvicted", err)
		}
		if got := time.Since(start); got != unixsock.AuthGrace {
			t.Errorf("it was told after %v, want %v", got, unixsock.AuthGrace)
		}
		if n := gate.Waiting(); n != unixsock.AuthWaiting {
			t.Errorf("%d wait, want %d", n, unixsock.AuthWaiting)
		}
	})
}

// enterAgent takes a place for one more connection of an agent.
func enterAgent(gate *unixsock.Gate, agent int64) (*clock, error) {
	conn := &clock{}
	_, err := gate.EnterAgent(conn, agent)
	return conn, err
}

// An agent gets so many places and no more, however many processes it has, and nobody waits for that.
func TestGateTakesAnAgentForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := unixsock.NewGate(), time.Now()
		most := unixsock.DefaultBounds().Prologues
		var crowd []*clock
		for i := range 1000 {
			conn, err := enterAgent(gate, 7)
			if i < most {
				must(t, err)
				crowd = append(crowd, conn)
			} else if !errors.Is(err, unixsock.ErrPrologue) {
				t.Fatalf("connection %d was told %v, want ErrPrologue", i, err)
			}
		}
		if got := interrupted(crowd); got != 0 {
			t.Errorf("%d of the first were interrupted", got)
		}
		honest := silence(t, gate, unixsock.AuthWaiting-most, 1)
		if got := interrupted(honest); got != 0 || time.Since(start) != 0 {
			t.Errorf("%d of the operator's were interrupted, and they waited %v", got, time.Since(start))
		}
	})
}

// Agents have half of the places: the operator's connections wait for none of them, and an agent that comes late takes the
// place of one that has more.
func TestGateReservesPlacesForTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := unixsock.NewGate(), time.Now()
		most := unixsock.DefaultBounds().Prologues
		var crowds []*clock
		for agent := range int64(unixsock.AgentsWaiting / most) {
			for range most {
				conn, err := enterAgent(gate, 1+agent)
				must(t, err)
				crowds = append(crowds, conn)
			}
		}
		_, err := enterAgent(gate, 100)
		must(t, err)
		if got := interrupted(crowds); got != 1 {
			t.Errorf("%d made room for another agent, want 1", got)
		}
		silence(t, gate, unixsock.AuthWaiting-unixsock.AgentsWaiting, 1)
		if got := time.Since(start); got != 0 || interrupted(crowds) != 1 {
			t.Errorf("the operator waited %v, and %d agents were interrupted", got, interrupted(crowds))
		}
		if _, err := enterAgent(gate, 101); err != nil {
			t.Errorf("an agent without a place, while others have many, was told %v", err)
		}
		// More than its half the operator gets as well, if it waits a little.
		silence(t, gate, 1, 2)
		if got := time.Since(start); got != unixsock.CrowdGrace {
			t.Errorf("the operator waited %v, want %v", got, unixsock.CrowdGrace)
		}
	})
}

// Operators' silent connections keep an agent out, and are not evicted for it.
func TestGatePrefersTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := unixsock.NewGate()
		honest := silence(t, gate, unixsock.AuthWaiting, 1)
		if _, err := enterAgent(gate, 7); !errors.Is(err, unixsock.ErrNoPlace) {
			t.Errorf("the agent was told %v, want ErrNoPlace", err)
		}
		if got := interrupted(honest); got != 0 {
			t.Errorf("%d of the operator's were interrupted", got)
		}
	})
}

// A newcomer of another process does not queue behind those of the process that has taken all places.
func TestGateServesAnotherProcessFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := unixsock.NewGate(), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range 1000 {
			wait.Go(func() { _, _ = gate.Enter(ctx, &clock{}, 1) })
		}
		synctest.Wait()
		_, err := gate.Enter(t.Context(), &clock{}, 2)
		must(t, err)
		if got := time.Since(start); got > unixsock.CrowdGrace {
			t.Errorf("it waited %v, want %v at most", got, unixsock.CrowdGrace)
		}
		cancel()
		wait.Wait()
	})
}

func TestGateGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := unixsock.NewGate()
		silence(t, gate, unixsock.AuthWaiting, 1)
		ctx, cancel := context.WithTimeout(t.Context(), unixsock.CrowdGrace/2)
		defer cancel()
		if _, err := gate.Enter(ctx, &clock{}, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestClosedGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, conn := unixsock.NewGate(), &clock{}
		inside, err := gate.Enter(t.Context(), conn, 1)
		must(t, err)
		others := silence(t, gate, unixsock.AuthWaiting-1, 1)
		refused := make(chan error)
		go func() {
			_, err := gate.Enter(t.Context(), &clock{}, 2)
			refused <- err
		}()
		synctest.Wait()
		gate.Close()
		if err := <-refused; !errors.Is(err, unixsock.ErrClosing) {
			t.Errorf("who waited for a place was told %v, want ErrClosing", err)
		}
		if got := interrupted(append(others, conn)); got != unixsock.AuthWaiting {
			t.Errorf("%d of those inside were interrupted", got)
		}
		if err := gate.Leave(inside, false); !errors.Is(err, unixsock.ErrClosing) {
			t.Errorf("who was inside was told %v, want ErrClosing", err)
		}
	})
}

package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
)

// clock is a connection that only records its deadline.
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

// silence enters n silent connections of the process pid.
func silence(t *testing.T, gate *access.Gate, n, pid int) []*clock {
	t.Helper()
	conns := make([]*clock, n)
	for i := range conns {
		conns[i] = &clock{}
		_, err := gate.Enter(t.Context(), conns[i], pid)
		testkit.Must(t, err)
	}
	return conns
}

func TestGateBoundsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, conn := access.NewGate(), &clock{}
		v, err := gate.Enter(t.Context(), conn, 1)
		testkit.Must(t, err)
		if got, want := conn.deadline(), time.Now().Add(access.AuthTimeout); !got.Equal(want) {
			t.Errorf("deadline is %v, want %v", got, want)
		}
		testkit.Must(t, gate.Leave(v, true))
		if !conn.deadline().IsZero() {
			t.Errorf("deadline is still %v", conn.deadline())
		}
	})
}

// TestGateLetsABurstThrough: a burst of honest clients is admitted one after the other; none evicts
// another, however slow the machine is, whether they are of one process or of a thousand.
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
				gate := access.NewGate()
				var wait sync.WaitGroup
				for i := range 1000 { // as they are accepted
					v, err := gate.Enter(t.Context(), &clock{}, process(i))
					testkit.Must(t, err)
					if n := gate.Waiting(); n > access.AuthWaiting {
						t.Fatalf("%d wait at once", n)
					}
					wait.Go(func() {
						time.Sleep(time.Duration(1+i%access.AuthWaiting) * 10 * time.Millisecond) // fake time
						if err := gate.Leave(v, true); err != nil {
							t.Errorf("an honest client got: %v", err)
						}
					})
				}
				wait.Wait()
			})
		})
	}
}

// TestGateServesBehindSilentConnections: behind a thousand silent connections of another process,
// an honest client waits less than two seconds, and is then not evicted for more of them.
func TestGateServesBehindSilentConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := access.NewGate(), time.Now()
		silent := silence(t, gate, 1000, 1)
		honest, err := gate.Enter(t.Context(), &clock{}, 2)
		testkit.Must(t, err)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the honest client waited %v for a place", took)
		}
		if got, want := interrupted(silent), len(silent)-access.AuthWaiting+1; got != want {
			t.Errorf("%d silent connections were interrupted, want %d", got, want)
		}
		silence(t, gate, 1000, 1)
		testkit.Must(t, gate.Leave(honest, true))
	})
}

// TestGateEvictsTheOldest: if no process has more places than the others, the oldest connection is
// evicted.
func TestGateEvictsTheOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := access.NewGate(), time.Now()
		first, err := gate.Enter(t.Context(), &clock{}, 0)
		testkit.Must(t, err)
		for pid := 1; pid <= access.AuthWaiting; pid++ {
			time.Sleep(time.Millisecond) // fake time
			silence(t, gate, 1, pid)
		}
		if err := gate.Leave(first, false); !errors.Is(err, access.ErrEvicted) {
			t.Errorf("the first got %v, want ErrEvicted", err)
		}
		if got := time.Since(start); got != access.AuthGrace {
			t.Errorf("the first connection was evicted after %v, want %v", got, access.AuthGrace)
		}
		if n := gate.Waiting(); n != access.AuthWaiting {
			t.Errorf("%d wait, want %d", n, access.AuthWaiting)
		}
	})
}

// enterAgent takes a place for one more connection of an agent.
func enterAgent(gate *access.Gate, agent int64) (*clock, error) {
	conn := &clock{}
	_, err := gate.EnterAgent(conn, agent)
	return conn, err
}

// TestGateTakesAnAgentForOne: an agent has one limit on places, however many processes it has; a
// further connection is refused at once.
func TestGateTakesAnAgentForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := access.NewGate(), time.Now()
		most := access.Prologues
		var crowd []*clock
		for i := range 1000 {
			conn, err := enterAgent(gate, 7)
			if i < most {
				testkit.Must(t, err)
				crowd = append(crowd, conn)
			} else if !errors.Is(err, access.ErrPrologue) {
				t.Fatalf("connection %d got %v, want ErrPrologue", i, err)
			}
		}
		if got := interrupted(crowd); got != 0 {
			t.Errorf("%d of the first were interrupted", got)
		}
		honest := silence(t, gate, access.AuthWaiting-most, 1)
		if got := interrupted(honest); got != 0 || time.Since(start) != 0 {
			t.Errorf("%d of the operator's were interrupted, and they waited %v", got, time.Since(start))
		}
	})
}

// TestGateReservesPlacesForTheOperator: agents have half of the places. The operator's connections
// do not wait for agents, and a late agent takes a place of an agent that has more.
func TestGateReservesPlacesForTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := access.NewGate(), time.Now()
		most := access.Prologues
		var crowds []*clock
		for agent := range int64(access.AgentsWaiting / most) {
			for range most {
				conn, err := enterAgent(gate, 1+agent)
				testkit.Must(t, err)
				crowds = append(crowds, conn)
			}
		}
		_, err := enterAgent(gate, 100)
		testkit.Must(t, err)
		if got := interrupted(crowds); got != 1 {
			t.Errorf("%d made room for another agent, want 1", got)
		}
		silence(t, gate, access.AuthWaiting-access.AgentsWaiting, 1)
		if got := time.Since(start); got != 0 || interrupted(crowds) != 1 {
			t.Errorf("the operator waited %v, and %d agents were interrupted", got, interrupted(crowds))
		}
		if _, err := enterAgent(gate, 101); err != nil {
			t.Errorf("an agent without a place, while others have many, got %v", err)
		}
		// The operator gets more than half of the places after a short wait.
		silence(t, gate, 1, 2)
		if got := time.Since(start); got != access.CrowdGrace {
			t.Errorf("the operator waited %v, want %v", got, access.CrowdGrace)
		}
	})
}

// TestGatePrefersTheOperator: silent connections of operators are not evicted for an agent's.
func TestGatePrefersTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := access.NewGate()
		honest := silence(t, gate, access.AuthWaiting, 1)
		if _, err := enterAgent(gate, 7); !errors.Is(err, access.ErrNoPlace) {
			t.Errorf("the agent got %v, want ErrNoPlace", err)
		}
		if got := interrupted(honest); got != 0 {
			t.Errorf("%d of the operator's were interrupted", got)
		}
	})
}

// TestGateServesAnotherProcessFirst: a connection of another process does not queue behind those of
// the process that has all places.
func TestGateServesAnotherProcessFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, start := access.NewGate(), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range 1000 {
			wait.Go(func() { _, _ = gate.Enter(ctx, &clock{}, 1) })
		}
		synctest.Wait()
		_, err := gate.Enter(t.Context(), &clock{}, 2)
		testkit.Must(t, err)
		if got := time.Since(start); got > access.CrowdGrace {
			t.Errorf("it waited %v, want %v at most", got, access.CrowdGrace)
		}
		cancel()
		wait.Wait()
	})
}

func TestGateGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := access.NewGate()
		silence(t, gate, access.AuthWaiting, 1)
		ctx, cancel := context.WithTimeout(t.Context(), access.CrowdGrace/2)
		defer cancel()
		if _, err := gate.Enter(ctx, &clock{}, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestClosedGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, conn := access.NewGate(), &clock{}
		inside, err := gate.Enter(t.Context(), conn, 1)
		testkit.Must(t, err)
		others := silence(t, gate, access.AuthWaiting-1, 1)
		refused := make(chan error)
		go func() {
			_, err := gate.Enter(t.Context(), &clock{}, 2)
			refused <- err
		}()
		synctest.Wait()
		gate.Close()
		if err := <-refused; !errors.Is(err, access.ErrClosing) {
			t.Errorf("a waiting connection got %v, want ErrClosing", err)
		}
		if got := interrupted(append(others, conn)); got != access.AuthWaiting {
			t.Errorf("%d of those inside were interrupted", got)
		}
		if err := gate.Leave(inside, false); !errors.Is(err, access.ErrClosing) {
			t.Errorf("a connection with a place got %v, want ErrClosing", err)
		}
	})
}

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

// An agent with many processes, each with one silent connection, loses its own places, not those of a process with two.
func TestGateTakesAnAgentForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := unixsock.NewGate()
		honest := silence(t, gate, 2, unixsock.CrowdOf(unixsock.Peer{PID: 7}))
		var crowd []*clock
		for i := range unixsock.AuthWaiting {
			crowd = append(crowd, silence(t, gate, 1, unixsock.CrowdOf(unixsock.Peer{PID: 100 + i, Agent: 7}))...)
		}
		if mine, theirs := interrupted(honest), interrupted(crowd); mine != 0 || theirs != 2 {
			t.Errorf("%d of the honest were interrupted, and %d of the agent's; want 0 and 2", mine, theirs)
		}
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

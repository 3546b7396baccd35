package daemon_test

import (
	"errors"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func idleAfter(d time.Duration) func(*config.Config) {
	return func(c *config.Config) { c.IdleTimeout = config.Duration(d) }
}

func TestIdleDaemonEnds(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"soon": 20 * time.Millisecond, "at once": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, idleAfter(limit))
			testkit.Must(t, testkit.Receive(t, r.ended, "the idle daemon's end"))
			r.wantGone(t)
		})
	}
}

// An open connection keeps the daemon running, also without traffic for longer than the timeout; the time starts at the end
// of the last connection.
func TestConnectionsKeepTheDaemon(t *testing.T) {
	t.Parallel()
	r, first, limit := startKept(t)
	first.send(authenticated)
	last := dial(t, r.EventsSocket)
	for _, p := range []*peer{first, last} {
		p.send(pings(1))
		p.wantPing(0)
	}
	testkit.Must(t, first.nc.Close())
	select {
	case err := <-r.ended:
		t.Fatalf("the daemon ended (%v) with a connection open", err)
	case <-time.After(3 * limit):
	}
	last.send(pings(1))
	last.wantPing(0)
	testkit.Must(t, last.nc.Close())
	testkit.Must(t, testkit.Receive(t, r.ended, "the idle daemon's end"))
}

// The time to answer the prologue starts when the client has received it.
func TestPrologueKeepsTheDaemon(t *testing.T) {
	t.Parallel()
	r, p, limit := startKept(t)
	select {
	case err := <-r.ended:
		t.Fatalf("the daemon ended (%v) with a connection open", err)
	case <-time.After(3 * limit):
	}
	p.send(authenticated + pings(1))
	p.wantPing(0)
}

// authenticated answers the prologue.
const authenticated = `{"kind":"reply","type":"Syscall.Authenticate","data":{}}` + "\n"

// startKept starts a daemon that a client connects to before it has been idle for limit. On a machine that is too busy for
// that, the next attempt has twice the time.
func startKept(t *testing.T) (r *running, p *peer, limit time.Duration) {
	t.Helper()
	return kept(t, func(limit time.Duration) *running { return start(t, idleAfter(limit)) })
}

// kept is startKept with a function that starts the daemon.
func kept(t *testing.T, start func(limit time.Duration) *running) (r *running, p *peer, limit time.Duration) {
	t.Helper()
	for limit = 300 * time.Millisecond; limit < testkit.Patience; limit *= 2 {
		r = start(limit)
		if p = reach(t, r.KernelSocket); p != nil {
			return r, p, limit
		}
		testkit.Must(t, testkit.Receive(t, r.ended, "the idle daemon's end"))
	}
	t.Fatal("each daemon ended before a client had connected: the machine is too busy")
	return r, p, limit
}

// A connection during the end is served, or refused before the prologue.
func TestIdleEndLosesNobody(t *testing.T) {
	t.Parallel()
	const limit = 4 * time.Millisecond
	rounds := testkit.Rounds(40, 60, 150)
	served := 0
	for round := range rounds {
		r := start(t, idleAfter(limit))
		<-time.After(limit * time.Duration(round) * 3 / 2 / time.Duration(rounds)) // waits for nothing: it aims at the end
		if connectOrRefused(t, r.KernelSocket) {
			served++
		}
		testkit.Must(t, testkit.Receive(t, r.ended, "the idle daemon's end"))
	}
	t.Logf("%d clients served, %d refused", served, rounds-served)
	if served == 0 {
		t.Error("no client was served")
	}
}

// connectOrRefused reports whether a client was served. If it was neither served nor refused, the test fails.
func connectOrRefused(t *testing.T, path string) bool {
	t.Helper()
	p := reach(t, path)
	if p == nil {
		return false
	}
	p.send(authenticated + pings(1))
	p.wantPing(0)
	testkit.Must(t, p.nc.Close())
	return true
}

// reach returns a connection on which the daemon has sent the prologue, or nil if the daemon has refused it.
func reach(t *testing.T, path string) *peer {
	t.Helper()
	nc, err := unixsock.Dial(testkit.Context(t), path)
	if errors.Is(err, unixsock.ErrNoSocket) || errors.Is(err, unixsock.ErrNotListening) {
		return nil
	}
	testkit.Must(t, err)
	t.Cleanup(func() { nc.Close() })
	testkit.Must(t, nc.SetDeadline(time.Now().Add(testkit.Patience)))
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	testkit.Must(t, err)
	p := &peer{t: t, nc: nc, conn: conn}
	switch m, err := p.read(); {
	case hungUp(err):
		return nil
	case err != nil || m.Type != "Syscall.Authenticate":
		t.Fatalf("it begins with %s %s, %v", m.Type, m.Data, err)
	}
	return p
}

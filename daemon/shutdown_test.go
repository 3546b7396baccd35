package daemon_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// inFlight is how many frames the tests have in flight at the end. Together they fit into one read of the daemon's, so
// that the first answer shows that all were received.
const inFlight = 200

// Received frames are answered, whatever ends the daemon, and the sockets and locks are removed.
func TestShutdownAnswersWhatWasReceived(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, r *running){
		"context": func(_ *testing.T, r *running) { r.stop() },
		"syscall": func(t *testing.T, r *running) {
			other := dial(t, r.KernelSocket)
			other.send(shutdownFrame)
			if m := other.next(); m.Kind != schema.KindReply || string(m.Data) != `{"success":true}` {
				t.Errorf("shutdown got %s %s", m.Kind, m.Data)
			}
			other.wantEnd()
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil)
			busy, quiet := dial(t, r.KernelSocket), dial(t, r.EventsSocket)
			quiet.send(pings(1))
			quiet.wantPing(0) // so it is past the prologue on the daemon's side as well
			busy.send(pings(inFlight))
			busy.wantPing(0)
			end(t, r)
			for i := 1; i < inFlight; i++ {
				busy.wantPing(i)
			}
			busy.wantEnd()
			quiet.wantEnd()
			testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
			r.wantGone(t)
		})
	}
}

// Frames that lie unread in the socket when the end comes are read and answered, though their client is slow to read, and it
// sees an end behind the last answer.
func TestShutdownReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := dial(t, r.KernelSocket)
	p.send(pings(1))
	p.wantPing(0)
	// Until the daemon, which has answers that nobody reads, reads no more and the socket is full.
	taken := stuff(t, p)
	whole := bytes.Count(taken, []byte("\n"))
	r.stop()
	for i := range whole {
		if i%500 == 0 {
			time.Sleep(5 * time.Millisecond) // the client is slow; nothing waits for this
		}
		p.wantPing(i)
	}
	if taken[len(taken)-1] != '\n' { // the frame that was cut short
		if m := p.next(); m.Kind != schema.KindError {
			t.Errorf("half a frame got %s %s", m.Kind, m.Data)
		}
	}
	p.wantEnd()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
}

// wantGone checks that a daemon left its directory as it has to, and that nobody is locked out of it.
func (r *running) wantGone(t *testing.T) {
	t.Helper()
	for _, path := range []string{r.KernelSocket, r.EventsSocket} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	// A program that another test is starting holds all our descriptors for a moment.
	var lock *unixsock.Lock
	testkit.Eventually(t, "the lock", func() (free bool) {
		var err error
		lock, err = unixsock.AcquireLock(r.Lock)
		if err != nil && !errors.Is(err, fault.PlaceLocked) {
			t.Fatal(err)
		}
		return err == nil
	})
	testkit.Must(t, lock.Release())
}

// Frames around the one that ends the kernel, in one write: all are answered, in their order.
func TestShutdownAmongOtherFrames(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := dial(t, r.KernelSocket)
	p.send(pings(50) + shutdownFrame + pings(50))
	for i := range 50 {
		p.wantPing(i)
	}
	if m := p.next(); m.Meta.Causation != "end" || m.Kind != schema.KindReply {
		t.Errorf("got %s %s, want the answer to the shutdown", m.Kind, m.Data)
	}
	for i := range 50 {
		p.wantPing(i)
	}
	p.wantEnd()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
}

// A client that does not read its answers delays the end by the grace at most.
func TestShutdownCutsWhoDoesNotRead(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := dial(t, r.KernelSocket)
	stuff(t, p)
	begin := time.Now()
	r.stop()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
	if took := time.Since(begin); took < daemon.Grace-time.Second || took > daemon.Grace+20*time.Second {
		t.Errorf("it took %v, want %v", took, daemon.Grace)
	}
	r.wantGone(t)
}

// A daemon that was opened and never run releases everything too.
func TestCloseWithoutRun(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	d := daemon.New(cfg, nil, discard())
	testkit.Must(t, d.Open(testkit.Context(t)))
	testkit.Must(t, d.Close())
	r := &running{Places: unixsock.PlacesIn(cfg.RuntimeDir)}
	r.wantGone(t)
}

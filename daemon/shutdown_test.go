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

// inFlight is how many frames the tests have in flight at the end. Together they fit one read of the daemon, so the first
// answer shows that all were received.
const inFlight = 200

// Received frames are answered however the daemon is ended, and the sockets and locks are removed.
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
			quiet.wantPing(0) // so that the daemon has completed its prologue
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

// Frames that are unread in the socket at the end are read and answered, also if their client is slow to read. The client
// sees the end of the connection after the last answer.
func TestShutdownReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	p := dial(t, r.KernelSocket)
	p.send(pings(1))
	p.wantPing(0)
	// Write until the daemon, whose answers are not read, reads no more and the socket is full.
	taken := stuff(t, p)
	whole := bytes.Count(taken, []byte("\n"))
	r.stop()
	for i := range whole {
		if i%500 == 0 {
			time.Sleep(5 * time.Millisecond) // the client is slow; nothing waits for this
		}
		p.wantPing(i)
	}
	if taken[len(taken)-1] != '\n' { // the frame that was cut
		if m := p.next(); m.Kind != schema.KindError {
			t.Errorf("half a frame got %s %s", m.Kind, m.Data)
		}
	}
	p.wantEnd()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
}

// wantGone checks the files that a daemon leaves in its directory, and that its lock is free.
func (r *running) wantGone(t *testing.T) {
	t.Helper()
	for _, path := range []string{r.KernelSocket, r.EventsSocket} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	// A program that another test is starting may have all descriptors of this process for a moment.
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

// Frames around the one that ends the kernel, in one write, are all answered in order.
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

// A client that does not read its answers delays the end at most by the grace period.
func TestShutdownCutsWhoDoesNotRead(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	d := daemon.New(cfg, nil, discard())
	const grace = time.Second
	d.SetGrace(grace)
	r := runThis(t, cfg, d)
	p := dial(t, r.KernelSocket)
	stuff(t, p)
	begin := time.Now()
	r.stop()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
	if took := time.Since(begin); took < grace || took > grace+20*time.Second {
		t.Errorf("it took %v, want %v", took, grace)
	}
	r.wantGone(t)
}

// A daemon that was opened and never run also releases everything.
func TestCloseWithoutRun(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	d := daemon.New(cfg, nil, discard())
	testkit.Must(t, d.Open(testkit.Context(t)))
	testkit.Must(t, d.Close())
	r := &running{Places: unixsock.PlacesIn(cfg.RuntimeDir)}
	r.wantGone(t)
}

package unixsock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// keeper lets in who answers with data that says good, and holds everybody else's refusal back for a time.
type keeper struct {
	delay time.Duration
	held  atomic.Int32 // holds that were begun
	freed atomic.Int32 // and ended
	done  atomic.Int32
}

func (k *keeper) Offer(context.Context, unixsock.Peer, string) (unixsock.Offer, error) {
	return unixsock.Offer{
		Data: []byte(`{}`),
		Verify: func(answer []byte) (unixsock.Identity, error) {
			if strings.Contains(string(answer), "good") {
				return unixsock.Identity{Agent: 7}, nil
			}
			return unixsock.Identity{}, fault.AuthSignature.New("wrong")
		},
		Hold: func() (time.Duration, func()) {
			k.held.Add(1)
			return k.delay, func() { k.freed.Add(1) }
		},
		Done: func() { k.done.Add(1) },
	}, nil
}

func answering(t *testing.T, data string, heard *string) func(net.Conn) {
	return func(conn net.Conn) {
		must(t, readLine(conn))
		if _, err := conn.Write([]byte(strings.Replace(replyEvent, "{}", data, 1) + "\n")); err != nil {
			return
		}
		text := make([]byte, 1<<10)
		n, _ := conn.Read(text)
		*heard = string(text[:n])
	}
}

// A refusal is held back, and meanwhile its connection waits in nobody's way.
func TestHeldRefusalsTakeNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{delay: 500 * time.Millisecond}
		server := unixsock.NewServer(unixsock.ServerConfig{Authenticator: k})
		var heard, nothing string
		ended := make(chan time.Duration)
		go func() {
			took, err := receive(t, server, answering(t, `"bad"`, &heard))
			if code := fault.Of(err); code.Kind != fault.Unauthenticated {
				t.Errorf("ended with %v", err)
			}
			ended <- took
		}()
		synctest.Wait()
		if k.held.Load() != 1 || k.freed.Load() != 0 || server.Gate().Waiting() != 0 {
			t.Errorf("%d held, %d freed, %d wait", k.held.Load(), k.freed.Load(), server.Gate().Waiting())
		}
		if k.done.Load() != 1 {
			t.Error("the exchange was not said to be over")
		}
		if took, err := receive(t, server, func(conn net.Conn) {
			answering(t, `"good"`, &nothing)(&cut{conn})
		}); err != nil || took != 0 {
			t.Errorf("a good one took %v: %v", took, err)
		}
		if took := <-ended; took != k.delay || k.freed.Load() != 1 {
			t.Errorf("it was held for %v, freed %d times", took, k.freed.Load())
		}
		if !strings.Contains(heard, "UNAUTHORIZED") || k.done.Load() != 2 {
			t.Errorf("it heard %q; %d exchanges are over", heard, k.done.Load())
		}
	})
}

// cut is a connection whose reader has heard enough after a line.
type cut struct{ net.Conn }

var errCut = errors.New("heard enough")

func (c *cut) Read(p []byte) (int, error) {
	if len(p) > 1 {
		return 0, errCut
	}
	return c.Conn.Read(p)
}

// The shutdown waits for no hold.
func TestShutdownEndsAHold(t *testing.T) {
	t.Parallel()
	k := &keeper{delay: time.Hour}
	server := start(t, unixsock.ServerConfig{Handler: echo, Authenticator: k})
	nc, conn := dialConn(t, server.KernelSocket)
	defer nc.Close()
	must(t, unixsock.ClientPrologue(t.Context(), conn, func([]byte, time.Time) ([]byte, error) { return []byte(`"bad"`), nil }))
	for limit := time.Now().Add(time.Minute); k.held.Load() == 0 && time.Now().Before(limit); {
		<-time.After(time.Millisecond)
	}
	must(t, server.Shutdown(t.Context()))
	line, err := conn.Next()
	if err != nil || !strings.Contains(string(line), `"code":401`) {
		t.Errorf("it was told %q, %v", line, err)
	}
	if k.freed.Load() != 1 {
		t.Error("the hold was not given back")
	}
}

// The authenticator learns by which socket a connection came.
func TestOfferKnowsTheSocket(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	names := make(chan string, 1)
	server := unixsock.NewServer(unixsock.ServerConfig{
		Endpoints:     []unixsock.Endpoint{{Listener: listeners[0], MaxLine: schema.MaxLine, Socket: "the/name"}},
		Handler:       echo,
		Authenticator: nameTaker(names),
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	nc, err := unixsock.Dial(t.Context(), places.KernelSocket)
	must(t, err)
	if got := <-names; got != "the/name" {
		t.Errorf("the socket is %q", got)
	}
	must(t, nc.Close())
	must(t, server.Shutdown(t.Context()))
	must(t, <-served)
}

type nameTaker chan string

func (n nameTaker) Offer(_ context.Context, _ unixsock.Peer, socket string) (unixsock.Offer, error) {
	n <- socket
	return unixsock.OpenMode{}.Offer(context.Background(), unixsock.Peer{}, socket)
}

package unixsock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// holder refuses every answer and holds that back for an hour; it tells when a hold begins and ends.
type holder chan string

func (h holder) Offer(context.Context, access.Peer, string) (access.Offer, error) {
	return access.Offer{
		Data:   []byte(`{}`),
		Verify: func([]byte) (access.Identity, error) { return access.Identity{}, fault.AuthSignature.New("wrong") },
		Hold: func() (time.Duration, func()) {
			h <- "held"
			return time.Hour, func() { h <- "freed" }
		},
	}, nil
}

// The shutdown does not wait for delayed answers.
func TestShutdownEndsAHold(t *testing.T) {
	t.Parallel()
	k := make(holder, 2)
	server := start(t, unixsock.ServerConfig{Handler: echo, Authenticator: k})
	nc, conn := dialConn(t, server.KernelSocket)
	defer nc.Close()
	must(t, access.ClientPrologue(t.Context(), conn, func([]byte, time.Time) ([]byte, error) { return []byte(`"bad"`), nil }))
	if got := testkit.Receive(t, k, "a hold"); got != "held" {
		t.Errorf("it is %s first", got)
	}
	must(t, server.Shutdown(t.Context()))
	line, err := conn.Next()
	if err != nil || !strings.Contains(string(line), `"code":401`) {
		t.Errorf("it was told %q, %v", line, err)
	}
	if got := testkit.Receive(t, k, "the hold's end"); got != "freed" {
		t.Errorf("it is %s again", got)
	}
}

// The authenticator gets the socket by which a connection came.
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

func (n nameTaker) Offer(_ context.Context, _ access.Peer, socket string) (access.Offer, error) {
	n <- socket
	return access.OpenMode{}.Offer(context.Background(), access.Peer{}, socket)
}

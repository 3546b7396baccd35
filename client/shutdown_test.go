package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// ending returns a Client of a kernel that hangs up after one answer, and the lock that this kernel holds.
func ending(t *testing.T) (c *client.Client, lock *unixsock.Lock, hungUp chan struct{}) {
	t.Helper()
	places := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	lock, err := unixsock.AcquireLock(places.Lock)
	testkit.Must(t, err)
	hungUp = make(chan struct{})
	serveKernel(t, places, func(conn access.Lines) {
		answerSome(conn, 1)
		close(hungUp)
	})
	return dial(t, places), lock, hungUp
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	c, lock, hungUp := ending(t)
	released := make(chan error, 1)
	go func() {
		<-hungUp
		released <- lock.Release()
	}()
	answer, err := c.Shutdown(testkit.Context(t))
	testkit.Must(t, err)
	testkit.Must(t, <-released)
	if answer.Type != "Syscall.Shutdown" || answer.Kind != schema.KindReply {
		t.Errorf("answer %+v", answer)
	}
}

// TestShutdownWaitsForTheLock: a kernel that has hung up and still holds its lock has not ended.
func TestShutdownWaitsForTheLock(t *testing.T) {
	t.Parallel()
	c, lock, hungUp := ending(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	go func() {
		<-hungUp
		cancel(enough)
	}()
	if _, err := c.Shutdown(ctx); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
	testkit.Must(t, lock.Release())
}

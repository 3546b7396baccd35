package unixsock_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestDialErrors(t *testing.T) {
	t.Parallel()
	unsafe := func(err error) bool { return errors.Is(err, fault.PlaceUnsafe) }
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	tests := []struct {
		name string
		make func(t *testing.T, places unixsock.Places)
		want func(error) bool
	}{
		{"no directory", func(t *testing.T, places unixsock.Places) { must(t, os.Remove(places.Dir)) }, is(unixsock.ErrNoSocket)},
		{"no socket", func(*testing.T, unixsock.Places) {}, is(unixsock.ErrNoSocket)},
		{"stale socket", func(t *testing.T, places unixsock.Places) { leaveStale(t, places.KernelSocket) }, is(unixsock.ErrNotListening)},
		{"regular file", func(t *testing.T, places unixsock.Places) {
			must(t, os.WriteFile(places.KernelSocket, nil, 0o600))
		}, unsafe},
		{"symbolic link to a listener", func(t *testing.T, places unixsock.Places) {
			say(prologueMessage)(t, places.EventsSocket)
			must(t, os.Symlink(places.EventsSocket, places.KernelSocket))
		}, unsafe},
		{"open directory", func(t *testing.T, places unixsock.Places) {
			say(prologueMessage)(t, places.KernelSocket)
			must(t, os.Chmod(places.Dir, 0o777))
		}, unsafe},
		{"directory that is a link", func(t *testing.T, places unixsock.Places) {
			say(prologueMessage)(t, places.KernelSocket)
			must(t, os.Rename(places.Dir, places.Dir+"x"))
			must(t, os.Symlink(places.Dir+"x", places.Dir))
		}, unsafe},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			places := privatePlaces(t)
			tt.make(t, places)
			conn, err := unixsock.Dial(t.Context(), places.KernelSocket)
			if conn != nil || !tt.want(err) {
				t.Errorf("got %v, %v", conn, err)
			}
		})
	}
}

func TestDialChecksTheLength(t *testing.T) {
	t.Parallel()
	path := "/" + string(make([]byte, unixsock.MaxSocketPath))
	_, err := unixsock.Dial(t.Context(), path)
	if !errors.Is(err, fault.PlacePathTooLong) {
		t.Errorf("got %v, want fault.PlacePathTooLong", err)
	}
}

func TestDialReachesAListener(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	say("hello")(t, places.KernelSocket)
	conn, err := unixsock.Dial(t.Context(), places.KernelSocket)
	must(t, err)
	defer conn.Close()
	var got [5]byte
	if _, err := conn.Read(got[:]); err != nil || string(got[:]) != "hello" {
		t.Errorf("read %q, %v", got[:], err)
	}
}

// TestDialWaitsForAFullQueue: Dial waits for a listener whose queue is full.
func TestDialWaitsForAFullQueue(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	ln := listenWithQueue(t, places.KernelSocket, 0)
	var queued []net.Conn
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		conn, err := unixsock.Dial(ctx, places.KernelSocket)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want the context's error", err)
			}
			break
		}
		queued = append(queued, conn)
	}
	dialed := make(chan error, 1)
	go func() {
		conn, err := unixsock.Dial(t.Context(), places.KernelSocket)
		if err == nil {
			err = conn.Close()
		}
		dialed <- err
	}()
	for range len(queued) + 1 {
		conn, err := ln.Accept()
		must(t, err)
		must(t, conn.Close())
	}
	must(t, <-dialed)
	for _, conn := range queued {
		must(t, conn.Close())
	}
	must(t, ln.Close())
}

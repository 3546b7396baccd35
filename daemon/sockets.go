package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// socketLook is how often a daemon looks whether its sockets are where it put them. A look is one lstat(2) a socket.
const socketLook = 5 * time.Second

// sockets are those that the daemon has bound itself. Whatever clears temporary directories may remove them, and then
// nobody can reach the kernel, not to end it either.
type sockets struct {
	lock  *unixsock.Lock
	bound []*unixsock.Listener
	log   *slog.Logger

	said map[*unixsock.Listener]string // why one cannot be bound again, as the log has it
}

// watchSockets looks after the sockets until the returned function is called, which waits for the end of that.
func (d *Daemon) watchSockets(ctx context.Context) (stop func()) {
	every := time.NewTicker(socketLook)
	looks := d.looks
	if looks == nil {
		looks = every.C
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { d.doors.watch(ctx, looks) })
	return func() {
		every.Stop()
		cancel()
		watch.Wait()
	}
}

// watch looks at each of ticks, until ctx ends.
func (s *sockets) watch(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			s.look(ctx)
		}
	}
}

// look binds again what is gone from its path. Why it cannot is logged once, until that has changed.
func (s *sockets) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, socketLook)
	defer cancel()
	for _, l := range s.bound {
		mended, err := l.Mend(bounded, s.lock)
		if mended {
			s.log.Warn("socket was removed, and is bound again", "socket", l.Addr().String())
		}
		switch {
		case err == nil:
			delete(s.said, l)
		case ctx.Err() == nil && s.said[l] != err.Error():
			s.said[l] = err.Error()
			s.log.Error("socket was removed, and cannot be bound again", "socket", l.Addr().String(), "error", err)
		}
	}
}

package daemon

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sshauth"
	"github.com/promptware-os/pwos/transport/systemd"
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

	paths  []string // of all sockets, inherited ones too
	inside string   // where programs find them
	all    bool     // programs run as another user

	said map[*unixsock.Listener]string // why one cannot be bound again, as the log has it
}

// listen binds the sockets that no service manager handed over.
func (d *Daemon) listen(ctx context.Context, places unixsock.Places) error {
	kernelSocket, eventsSocket, err := systemd.Assign(d.sockets)
	if err != nil {
		return err
	}
	doors := []struct {
		inherited *net.UnixListener
		path      string
		dialect   schema.Dialect
		limit     int
	}{
		{kernelSocket, places.KernelSocket, schema.OsMessage, d.config.Limits.LineBytes},
		{eventsSocket, places.EventsSocket, schema.OsEvent, max(schema.MaxEventLine, d.config.Limits.LineBytes)},
	}
	var paths []string
	for _, door := range doors {
		if door.inherited == nil {
			paths = append(paths, door.path)
		}
	}
	bound, err := unixsock.Listen(ctx, d.lock, paths...)
	if err != nil {
		return err
	}
	d.doors = &sockets{
		lock: d.lock, bound: slices.Clone(bound), log: d.log, said: make(map[*unixsock.Listener]string),
		inside: insideDir(places), all: d.config.Agents.User != "",
	}
	for _, door := range doors {
		var ln net.Listener
		if door.inherited != nil {
			ln = unixsock.Inherited(door.inherited)
		} else {
			ln, bound = bound[0], bound[1:]
		}
		if d.config.IdleTimeout > 0 {
			ln = counted{Listener: ln, idle: d.idle}
		}
		d.doors.paths = append(d.doors.paths, ln.Addr().String())
		e := unixsock.Endpoint{Listener: ln, Dialect: door.dialect, MaxLine: door.limit}
		d.endpoints = append(d.endpoints, e)
		if d.config.AuthorizedKeys == "" {
			continue
		}
		if door.inherited != nil {
			door.path = ln.Addr().String()
		}
		if d.endpoints[len(d.endpoints)-1].Socket, err = sshauth.SocketName(door.path); err != nil {
			return err
		}
	}
	return d.doors.share()
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
	if err := s.share(); err != nil {
		s.log.Error("programs do not find the sockets", "error", err)
	}
}

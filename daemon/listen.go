package daemon

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/systemd"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// listen binds the sockets that no service manager has passed.
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
		{eventsSocket, places.EventsSocket, schema.OsEvent, d.longLine()},
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
	d.doors.Lock, d.doors.Bound = d.lock, slices.Clone(bound)
	for _, door := range doors {
		var ln net.Listener
		if door.inherited != nil {
			ln = unixsock.Inherited(door.inherited)
		} else {
			ln, bound = bound[0], bound[1:]
		}
		ln = d.idle.Count(ln)
		d.doors.Paths = append(d.doors.Paths, ln.Addr().String())
		e := unixsock.Endpoint{Listener: ln, Dialect: door.dialect, MaxLine: door.limit}
		d.endpoints = append(d.endpoints, e)
		if d.config.AuthorizedKeys == "" {
			continue
		}
		if door.inherited != nil {
			door.path = ln.Addr().String()
		}
		if d.endpoints[len(d.endpoints)-1].Socket, err = access.SocketName(door.path); err != nil {
			return err
		}
	}
	if err := d.listenTLS(ctx); err != nil {
		return err
	}
	return d.doors.Share()
}

// longLine is the longest line of events.sock, and of clients on other machines, in bytes.
func (d *Daemon) longLine() int { return max(schema.MaxEventLine, d.config.Limits.LineBytes) }

// watchSockets maintains the sockets until the returned function is called, which waits for the end of its goroutine.
func (d *Daemon) watchSockets(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { d.doors.Keep(ctx) })
	return func() {
		cancel()
		watch.Wait()
	}
}

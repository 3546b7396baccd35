package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sshauth"
	"github.com/promptware-os/pwos/transport/systemd"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// A daemon looks whether its sockets are where it put them. A look is a few lstat(2) a socket.
const (
	socketLook  = 5 * time.Second        // between two looks where nothing tells of a change, or the last could not mend what it found
	socketPause = 100 * time.Millisecond // between a change and the look
)

// sockets are those that the daemon has bound itself. Whatever clears temporary directories may remove them, and then
// nobody can reach the kernel, not to end it either.
type sockets struct {
	lock  *unixsock.Lock
	bound []*unixsock.Listener
	log   *slog.Logger

	paths  []string // of all sockets, inherited ones too
	inside string   // where programs find them
	all    bool     // programs run as another user

	said map[*unixsock.Listener]string // why one cannot be bound again, as the log has it; of nil: why their directories cannot be watched
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
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			d.doors.lookAndWait(ctx, d.watchDirs, d.looks)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// lookAndWait looks at the sockets, and returns when it is time for another look: something has happened where they are or, where
// watch fails or a look found what it could not mend, after socketLook, or when looks says so if it is not nil.
func (s *sockets) lookAndWait(ctx context.Context, watch func(dirs []string) (*os.File, error), looks <-chan time.Time) {
	changed, stop, err := onChange(watch, s.dirs()...) // before the look, so that nothing is missed
	if errors.Is(err, fs.ErrNotExist) && s.look(ctx) { // which has made them again
		changed, stop, err = onChange(watch, s.dirs()...)
	}
	defer stop()
	s.report(nil, err, slog.LevelDebug, "sockets are looked at now and then, since their directories cannot be watched")
	if s.look(ctx) && err == nil {
		looks = nil
	} else if looks == nil {
		looks = time.After(socketLook)
	}
	select {
	case <-ctx.Done():
	case <-looks:
	case <-changed:
		select { // more may come, as when somebody removes the whole directory
		case <-ctx.Done():
		case <-time.After(socketPause):
		}
	}
}

// dirs are where the names of the sockets are.
func (s *sockets) dirs() []string {
	dirs := []string{s.inside}
	for _, path := range s.paths {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// look binds again what is gone from its path. It returns false where it cannot.
func (s *sockets) look(ctx context.Context) (well bool) {
	bounded, cancel := context.WithTimeout(ctx, socketLook)
	defer cancel()
	well = true
	for _, l := range s.bound {
		mended, err := l.Mend(bounded, s.lock)
		if mended {
			s.log.Warn("socket was removed, and is bound again", "socket", l.Addr().String())
		}
		if ctx.Err() != nil {
			return false
		}
		s.report(l, err, slog.LevelError, "socket was removed, and cannot be bound again", "socket", l.Addr().String())
		well = well && err == nil
	}
	if err := s.share(); err != nil {
		s.log.Error("programs do not find the sockets", "error", err)
		return false
	}
	return well
}

// report logs what is wrong with a socket, once until that has changed; of is nil for what is wrong with all of them.
func (s *sockets) report(of *unixsock.Listener, err error, level slog.Level, text string, args ...any) {
	switch {
	case err == nil:
		delete(s.said, of)
	case s.said[of] != err.Error():
		s.said[of] = err.Error()
		s.log.Log(context.Background(), level, text, append(args, "error", err)...)
	}
}

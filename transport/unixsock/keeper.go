package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/dirwatch"
)

// A daemon looks whether its sockets are where it put them. A look is a few lstat(2) a socket.
const (
	socketLook  = 5 * time.Second        // between two looks where nothing tells of a change, or the last failed
	socketPause = 100 * time.Millisecond // between a change and the look
)

// Keeper watches the sockets that a daemon has bound itself. Programs that clear temporary
// directories may remove them, and then no client can reach the kernel, not even to end it.
type Keeper struct {
	Lock  *Lock
	Bound []*Listener
	Log   *slog.Logger

	Paths  []string // of all sockets, inherited ones too
	Inside string   // where programs find them
	All    bool     // programs run as another user

	Watch func(dirs []string) (*os.File, error) // tells when to look at them, as dirwatch.Open does
	Looks <-chan time.Time                      // when to look if that fails; nil: after socketLook

	said map[*Listener]string // the logged reason why one cannot be bound again; for nil, why their directories cannot be watched
}

// Keep looks after the sockets until ctx ends.
func (s *Keeper) Keep(ctx context.Context) {
	for ctx.Err() == nil {
		s.lookAndWait(ctx)
	}
}

// lookAndWait examines the sockets, and returns when it is time to do so again: after a change in
// their directories or, if Watch fails or a socket could not be bound, after socketLook; or when
// Looks says so if it is not nil.
func (s *Keeper) lookAndWait(ctx context.Context) {
	looks := s.Looks
	changed, stop, err := dirwatch.OnChange(s.Watch, s.dirs()...) // before the look, so that nothing is missed
	if errors.Is(err, fs.ErrNotExist) && s.look(ctx) {            // which has made them again
		changed, stop, err = dirwatch.OnChange(s.Watch, s.dirs()...)
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
		select { // more changes may follow, for example when the whole directory is removed
		case <-ctx.Done():
		case <-time.After(socketPause):
		}
	}
}

// dirs are where the names of the sockets are.
func (s *Keeper) dirs() []string {
	dirs := []string{s.Inside}
	for _, path := range s.Paths {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// look binds missing sockets again. It returns false if it cannot.
func (s *Keeper) look(ctx context.Context) (well bool) {
	bounded, cancel := context.WithTimeout(ctx, socketLook)
	defer cancel()
	well = true
	for _, l := range s.Bound {
		repaired, err := l.Repair(bounded, s.Lock)
		if repaired {
			s.Log.Warn("socket was removed, and is bound again", "socket", l.Addr().String())
		}
		if ctx.Err() != nil {
			return false
		}
		s.report(l, err, slog.LevelError, "socket was removed, and cannot be bound again", "socket", l.Addr().String())
		well = well && err == nil
	}
	if err := s.Share(); err != nil {
		s.Log.Error("programs do not find the sockets", "error", err)
		return false
	}
	return well
}

// report logs what is wrong with a socket, once until it changes; nil is for what affects all of
// them.
func (s *Keeper) report(of *Listener, err error, level slog.Level, text string, args ...any) {
	switch {
	case err == nil:
		delete(s.said, of)
	case s.said[of] != err.Error():
		if s.said == nil {
			s.said = make(map[*Listener]string)
		}
		s.said[of] = err.Error()
		s.Log.Log(context.Background(), level, text, append(args, "error", err)...)
	}
}

// Share gives the sockets their second name in Inside, or a new one where they were bound again, and an empty
// directory for blobs.
func (s *Keeper) Share() error {
	dir := s.Inside
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o755); err != nil {
		return fmt.Errorf("share sockets: %w", err)
	}
	if s.All { // programs run as another user, whom the runtime directory keeps out from everywhere else
		if err := os.Chmod(dir, 0o755); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	for _, path := range s.Paths {
		name := filepath.Join(dir, filepath.Base(path))
		own, err := os.Lstat(path)
		if err != nil {
			continue // it was removed, and is bound again first
		}
		if there, err := os.Lstat(name); err == nil && os.SameFile(own, there) {
			continue
		}
		if s.All {
			err = os.Chmod(path, 0o666)
		}
		if err = errors.Join(err, os.RemoveAll(name), os.Link(path, name)); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	return nil
}

// Idle decides when a daemon ends that had no connection for a while. It counts connections from
// accept on, including clients in their prologue. A connection is either counted, and keeps the
// daemon, or comes after the decision and is closed before its first frame: then its client knows
// that nothing ran, and starts the next daemon.
type Idle struct {
	limit time.Duration // 0: never
	over  chan struct{} // closed when the end is decided

	mu    sync.Mutex
	conns int
	ended bool // no further connection is admitted
	turn  int  // which wait is meant: a timer of an earlier one comes too late
	timer *time.Timer
}

// NewIdle returns one that waits for so long; 0: forever.
func NewIdle(limit time.Duration) *Idle { return &Idle{limit: limit, over: make(chan struct{})} }

// Expired is closed when the time is up.
func (i *Idle) Expired() <-chan struct{} { return i.over }

// Begin starts the time; Stop has to follow.
func (i *Idle) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wait()
}

// Stop admits no further connection and stops the timer.
func (i *Idle) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.rest()
}

func (i *Idle) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return false
	}
	i.conns++
	i.rest()
	return true
}

func (i *Idle) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conns--; i.conns == 0 && !i.ended {
		i.wait()
	}
}

// Occupied counts the agents with programs as one connection. Where the end was decided before, the kernel is about to end
// them.
func (i *Idle) Occupied(on bool) {
	if on {
		i.enter()
		return
	}
	i.leave()
}

// wait restarts the timer. The caller has locked mu.
func (i *Idle) wait() {
	if i.limit == 0 {
		return
	}
	i.turn++
	turn := i.turn
	i.timer = time.AfterFunc(i.limit, func() { i.expire(turn) })
}

// rest ends a wait. The caller holds mu.
func (i *Idle) rest() {
	i.turn++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// expire decides the end, unless a connection came while the timer fired.
func (i *Idle) expire(turn int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn == turn && !i.ended {
		i.ended = true
		close(i.over)
	}
}

// Count returns a listener whose connections are counted.
func (i *Idle) Count(l net.Listener) net.Listener {
	if i.limit == 0 {
		return l
	}
	return counted{l, i}
}

// counted is a listener whose connections Idle counts.
type counted struct {
	net.Listener
	idle *Idle
}

// Accept returns the next connection that keeps the daemon.
func (l counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.idle.enter() {
			_ = conn.Close() // nothing was said that could be lost
			continue
		}
		return &countedConn{UnixConn: conn.(*net.UnixConn), left: sync.OnceFunc(l.idle.leave)}, nil
	}
}

// countedConn is a connection until it is closed.
type countedConn struct {
	*net.UnixConn
	left func()
}

var _ Detacher = (*countedConn)(nil)

// Detach implements Detacher: the connection continues.
func (c *countedConn) Detach() error { return c.UnixConn.Close() }

// Close closes the connection; it may be called again.
func (c *countedConn) Close() error {
	defer c.left()
	return c.UnixConn.Close()
}

package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/dirwatch"
)

// Times of checks for removed sockets. A check takes a few lstat(2) for each socket.
const (
	socketLook  = 5 * time.Second        // between two checks without change events, or after a failure
	socketPause = 100 * time.Millisecond // between a change and the check
)

// Keeper restores the sockets that a daemon has bound itself. Without them, as after a program has cleared temporary
// directories, no client can reach the kernel, not even to end it.
type Keeper struct {
	Lock  *Lock
	Bound []*Listener
	Log   *slog.Logger

	Paths  []string // of all sockets, inherited ones too
	Inside string   // directory in which programs find them

	Watch func(dirs []string) (*os.File, error) // reports changes in their directories, as dirwatch.Open does
	Looks <-chan time.Time                      // when to check if Watch fails; nil: after socketLook

	said map[*Listener]string // the logged error of each socket; for nil, that of Watch

	mu   sync.Mutex
	open bool // programs run as another user
}

// Keep restores the sockets until ctx ends.
func (s *Keeper) Keep(ctx context.Context) {
	for ctx.Err() == nil {
		s.lookAndWait(ctx)
	}
}

// lookAndWait checks the sockets, and returns when the next check is due: after a change in their directories or, if
// Watch fails or a socket could not be bound, after socketLook, or at the next event of Looks if that is not nil.
func (s *Keeper) lookAndWait(ctx context.Context) {
	looks := s.Looks
	changed, stop, err := dirwatch.OnChange(s.Watch, s.dirs()...) // before the check, so that no change is missed
	if errors.Is(err, fs.ErrNotExist) && s.look(ctx) {            // look has made the directories again
		changed, stop, err = dirwatch.OnChange(s.Watch, s.dirs()...)
	}
	defer stop()
	s.report(nil, err, slog.LevelDebug, "the directories of sockets cannot be watched: sockets are checked at intervals")
	if s.look(ctx) && err == nil {
		looks = nil
	} else if looks == nil {
		looks = time.After(socketLook)
	}
	select {
	case <-ctx.Done():
	case <-looks:
	case <-changed:
		select { // more changes may follow, as when the whole directory is removed
		case <-ctx.Done():
		case <-time.After(socketPause):
		}
	}
}

// dirs returns the directories with names of the sockets.
func (s *Keeper) dirs() []string {
	dirs := []string{s.Inside}
	for _, path := range s.Paths {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// look binds missing sockets again. It returns false if one cannot be bound.
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
		s.Log.Error("sockets are not available to programs", "error", err)
		return false
	}
	return well
}

// report logs the error of a socket if it has changed; nil is for an error of all sockets.
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

// Open lets programs of other users connect to the sockets, and enter Inside. No other process reaches them: the directory above is this
// user's alone.
func (s *Keeper) Open() error {
	s.mu.Lock()
	was := s.open
	s.open = true
	s.mu.Unlock()
	if was {
		return nil
	}
	return s.Share()
}

// Share links the sockets, with those that were bound again, into Inside, and makes an empty directory for blobs there.
func (s *Keeper) Share() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.Inside
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o755); err != nil {
		return fmt.Errorf("share sockets: %w", err)
	}
	if s.open { // another user may enter only this part of the runtime directory
		if err := os.Chmod(dir, 0o755); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	for _, path := range s.Paths {
		name := filepath.Join(dir, filepath.Base(path))
		own, err := os.Lstat(path)
		if err != nil {
			continue // it was removed; look binds it again and calls Share
		}
		if s.open && own.Mode().Perm() != 0o666 {
			if err := os.Chmod(path, 0o666); err != nil {
				return fmt.Errorf("share sockets: %w", err)
			}
		}
		if there, err := os.Lstat(name); err == nil && os.SameFile(own, there) {
			continue
		}
		if err := errors.Join(os.RemoveAll(name), os.Link(path, name)); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	return nil
}

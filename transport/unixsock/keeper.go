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
	"time"

	"github.com/promptware-os/pwos/internal/dirwatch"
)

// A daemon looks whether its sockets are where it put them. A look is a few lstat(2) a socket.
const (
	socketLook  = 5 * time.Second        // between two looks where nothing tells of a change, or the last could not mend what it found
	socketPause = 100 * time.Millisecond // between a change and the look
)

// Keeper looks after the sockets that a daemon has bound itself. Whatever clears temporary directories may remove them, and then
// nobody can reach the kernel, not to end it either.
type Keeper struct {
	Lock  *Lock
	Bound []*Listener
	Log   *slog.Logger

	Paths  []string // of all sockets, inherited ones too
	Inside string   // where programs find them
	All    bool     // programs run as another user

	Watch func(dirs []string) (*os.File, error) // tells when to look at them, as dirwatch.Open does
	Looks <-chan time.Time                      // when to look where that fails; nil: after socketLook

	said map[*Listener]string // why one cannot be bound again, as the log has it; of nil: why their directories cannot be watched
}

// Keep looks after the sockets until ctx ends.
func (s *Keeper) Keep(ctx context.Context) {
	for ctx.Err() == nil {
		s.lookAndWait(ctx)
	}
}

// lookAndWait looks at the sockets, and returns when it is time for another look: something has happened where they are or, where
// Watch fails or a look found what it could not mend, after socketLook, or when Looks says so if it is not nil.
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
		select { // more may come, as when somebody removes the whole directory
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

// look binds again what is gone from its path. It returns false where it cannot.
func (s *Keeper) look(ctx context.Context) (well bool) {
	bounded, cancel := context.WithTimeout(ctx, socketLook)
	defer cancel()
	well = true
	for _, l := range s.Bound {
		mended, err := l.Mend(bounded, s.Lock)
		if mended {
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

// report logs what is wrong with a socket, once until that has changed; of is nil for what is wrong with all of them.
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

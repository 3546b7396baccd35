package gitdirs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// Outcome is the outcome of a session.
type Outcome struct {
	Taken []string // keys that were taken over
	Left  []Change
	Made  []Made
}

// End takes over what is safe of a session whose agent has ended, and removes it if no change is left.
func (s Store) End(ctx context.Context, session *Session) (o Outcome, err error) {
	unlock, err := s.locked(ctx)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return s.finish(session)
}

func (s Store) finish(session *Session) (o Outcome, err error) {
	if session.PID == 0 {
		return o, errors.Join(s.unhold(session), session.remove())
	}
	for _, k := range session.Repos {
		if err := k.repair(); err != nil {
			return o, fmt.Errorf("repair %s: %w", k.Git, err)
		}
		for _, h := range k.Configs {
			taken, err := session.takeSafe(k, h)
			if err != nil {
				return o, fmt.Errorf("take over settings of %s: %w", h.Path, err)
			}
			o.Taken = append(o.Taken, taken...)
		}
	}
	if o.Left, err = session.changes(); err != nil {
		return o, err
	}
	if o.Made, err = s.noteMade(session); err != nil {
		return o, err
	}
	if err := s.unhold(session); err != nil {
		return o, err
	}
	if len(o.Left) == 0 {
		return o, session.remove()
	}
	session.Ended = true
	return o, errors.Join(session.save(), session.release())
}

// Sweep ends the sessions whose agents have ended without their client. runs reports whether an agent runs.
func (s Store) Sweep(ctx context.Context, runs func(pid int64) (bool, error)) (err error) {
	if _, err := os.Lstat(string(s)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.locked(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	list, err := s.sessions()
	if err != nil {
		return err
	}
	for _, session := range list {
		if session.Ended {
			continue
		}
		session.lock, err = os.OpenFile(filepath.Join(session.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = lockfile.Try(session.lock)
		}
		if errors.Is(err, lockfile.ErrHeld) {
			_ = session.lock.Close() // nothing was written
			continue
		}
		if err != nil {
			return fmt.Errorf("end copies for git: %w", err)
		}
		alive := false
		if session.PID != 0 {
			alive, err = runs(session.PID)
		}
		if err == nil && !alive {
			_, err = s.finish(session)
			session.lock = nil
		}
		if err = errors.Join(err, session.release()); err != nil {
			return err
		}
	}
	return nil
}

// Changes returns the changes that are left of all agents that have ended.
func (s Store) Changes() (left []Change, err error) {
	list, err := s.sessions()
	if err != nil {
		return nil, err
	}
	for _, session := range list {
		if !session.Ended {
			continue
		}
		changes, err := session.changes()
		if err != nil {
			return nil, err
		}
		left = append(left, changes...)
	}
	return left, nil
}

// Detach lets go of a session whose agent goes on without this process.
func (s *Session) Detach() error { return s.release() }

// Clean removes the sessions of which no change is left.
func (s Store) Clean(ctx context.Context) (err error) {
	unlock, err := s.locked(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	list, err := s.sessions()
	if err != nil {
		return err
	}
	for _, session := range list {
		if !session.Ended {
			continue
		}
		if left, err := session.changes(); err != nil {
			return err
		} else if len(left) == 0 {
			if err := session.remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// unhold removes what is only there for an agent, unless another one needs it.
func (s Store) unhold(session *Session) error {
	others, err := s.sessions()
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, other := range others {
		if other.dir == session.dir || other.Ended {
			continue
		}
		for _, h := range other.all() {
			needed[h.Path] = true
		}
	}
	var errs []error
	for _, h := range session.all() {
		if !h.Fresh || needed[h.Path] {
			continue
		}
		if text, err := readRegular(h.Path, maxConfig); err == nil && len(text) > len(".\n") {
			continue // it is in use meanwhile
		}
		err := os.Remove(h.Path)
		if h.IsDir && err != nil {
			continue // it is not empty any more
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

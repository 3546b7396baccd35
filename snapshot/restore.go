package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Restore is a restore from a copy, which stays locked until Close.
type Restore struct {
	*Snapshot
	Plan Plan

	store  *Store
	want   *folder
	unlock func() error
}

// Restore compares a directory with a copy, and prepares to restore it. end is the end of the agent: files that changed
// later, and are in no copy of the same process, are in Plan.Since.
func (s *Store) Restore(ctx context.Context, id string, end time.Time) (_ *Restore, err error) {
	if !IsID(id) {
		return nil, notThere(id)
	}
	unlock, err := s.lock(id)
	if err != nil {
		return nil, err
	}
	r := &Restore{store: s, unlock: unlock}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.Snapshot, err = s.Get(id); err != nil {
		return nil, err
	}
	if r.want, err = openTop(filepath.Join(s.path(id), treeName)); err != nil {
		return nil, failed("open", id, err)
	}
	if err := r.compare(ctx, end); err != nil {
		return nil, failed("compare", r.Dir, err)
	}
	return r, nil
}

func (r *Restore) compare(ctx context.Context, end time.Time) (err error) {
	have, err := r.open()
	if errors.Is(err, fs.ErrNotExist) {
		r.Plan.Changes = append(r.Plan.Changes, Change{Path: "./", What: Made})
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, have.Close()) }()
	m := newMerger(ctx, r.Skip, &r.Plan, false)
	m.end = end
	family, err := r.family()
	if err != nil {
		return err
	}
	for _, id := range family {
		other, err := openTop(filepath.Join(r.store.path(id), treeName))
		if err != nil {
			continue // it was removed concurrently
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		m.known = append(m.known, other)
	}
	w, err := r.want.self()
	if err != nil {
		return err
	}
	h, err := have.self()
	if err != nil {
		return err
	}
	if !sameAttributes(w, h) {
		m.note(h, ".", Changed)
	}
	return m.tree(r.want, have, "")
}

// open opens the directory. It fails if its path now has a symbolic link.
func (r *Restore) open() (*folder, error) {
	real, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return nil, err
	}
	if real != r.Dir {
		return nil, errors.New("its path now has a symbolic link")
	}
	return openTop(r.Dir)
}

// family returns the other copies of the same process.
func (r *Restore) family() (list []string, err error) {
	all, err := r.store.List()
	for _, one := range all {
		if one.ID != r.ID && one.first() == r.first() {
			list = append(list, one.ID)
		}
	}
	return list, err
}

// first returns the copy from before the process.
func (s *Snapshot) first() string {
	if s.First != "" {
		return s.First
	}
	return s.ID
}

// Nothing reports whether the directory equals the copy.
func (r *Restore) Nothing() bool { return len(r.Plan.Changes) == 0 }

// Keep copies what Apply will replace, and returns the id of that copy. A restore that completes an interrupted one reuses
// its copy, unless files have changed since.
func (r *Restore) Keep(ctx context.Context, pid, limit int64) (string, error) {
	if r.Undoing != "" && len(r.Plan.Since) == 0 {
		if _, err := r.store.Get(r.Undoing); err == nil {
			return r.Undoing, nil
		}
	}
	if r.gone() {
		return "", nil // there is no change to keep
	}
	made, err := r.store.Take(ctx, r.Dir, What{Limit: limit, Skip: r.Skip, PID: pid, First: r.first()})
	if err != nil {
		return "", err
	}
	return made.ID, nil
}

// Forget removes the copy of Keep if Apply will not be called.
func (r *Restore) Forget(kept string) error {
	if kept == "" || kept == r.Undoing {
		return nil
	}
	return r.store.Remove(kept)
}

func (r *Restore) gone() bool {
	_, err := os.Lstat(r.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// Apply makes the directory equal to the copy. If it is interrupted, the next restore from the copy completes it.
func (r *Restore) Apply(ctx context.Context, kept string) error {
	if kept != "" {
		r.Undoing = kept
		if err := r.store.describe(r.ID, r.Snapshot); err != nil {
			return failed("restore", r.Dir, err)
		}
	}
	if r.gone() {
		if err := os.Mkdir(r.Dir, 0o700); err != nil {
			return failed("restore", r.Dir, err)
		}
	}
	if err := r.mergeTree(ctx); err != nil {
		return failed("restore", r.Dir, err)
	}
	return r.Done()
}

func (r *Restore) mergeTree(ctx context.Context) (err error) {
	have, err := r.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, have.Close()) }()
	self, err := have.self()
	if err != nil {
		return err
	}
	if err := have.widen(self, 0o700); err != nil {
		return err
	}
	m := newMerger(ctx, r.Skip, new(Plan), true)
	if err := m.tree(r.want, have, ""); err != nil {
		return err
	}
	return flush(have)
}

// Done records that no restore from the copy is incomplete.
func (r *Restore) Done() error {
	if r.Undoing == "" {
		return nil
	}
	r.Undoing = ""
	return r.store.describe(r.ID, r.Snapshot)
}

// Close unlocks the copy.
func (r *Restore) Close() error {
	var err error
	if r.want != nil {
		err = r.want.Close()
	}
	return errors.Join(err, r.unlock())
}

package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Collect forgets steps that ended before a time, and the oldest ones as long as contents and steps take more than most bytes (0: any
// number), and what only they need. Numbers of steps go on.
func (s *Store) Collect(ctx context.Context, before time.Time, most int64) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	defer s.release()
	if !s.filled {
		return ErrNotFilled
	}
	if err := s.settled(); err != nil {
		return err
	}
	kept := s.log.marks
	for len(kept) > 1 && kept[0].ended.Before(before) { // the last one has the number to go on from
		kept = kept[1:]
	}
	for {
		if len(kept) < len(s.log.marks) {
			if err := s.rewrite(ctx, kept, nil); err != nil {
				return err
			}
			kept = s.log.marks
		}
		if most == 0 || s.pack.size+s.log.size <= most || len(kept) <= 1 {
			return nil
		}
		kept = kept[(len(kept)+1)/2:]
		if len(kept) == 0 {
			kept = s.log.marks[len(s.log.marks)-1:]
		}
	}
}

// settled returns an error if changes were found that no step has: a new generation would not find them again.
func (s *Store) settled() error {
	if len(s.pending) > 0 {
		return errors.New("changes are not recorded yet: nothing is forgotten before the next cut")
	}
	return nil
}

// rewrite makes a new generation of the files, with some steps and what they and the tree need, except for what is to go.
func (s *Store) rewrite(ctx context.Context, kept []mark, gone *removal) (err error) {
	if err := s.removeOthers(); err != nil {
		return err
	}
	next := &Store{dir: s.dir, root: s.root, options: s.options, fsys: s.fsys, generation: s.generation + 1, dirs: make(map[string][]item)}
	if err := next.openFiles(); err != nil {
		return err
	}
	holds := false
	defer func() {
		if !holds {
			err = errors.Join(err, next.closeFiles())
		}
	}()
	next.dirs = s.dirs
	for _, items := range s.dirs {
		for i := range items {
			if err := s.carry(ctx, next.pack, items[i].state, gone); err != nil {
				return err
			}
		}
	}
	for _, m := range kept {
		step, err := s.log.read(m)
		if err != nil {
			return err
		}
		for _, c := range step.Changes {
			if err := errors.Join(s.carry(ctx, next.pack, c.Before, gone), s.carry(ctx, next.pack, c.After, gone)); err != nil {
				return err
			}
		}
		if err := gone.of(step); err != nil {
			return err
		}
		step.packed = 0 // what is in the new file is synced before that is the one that holds
		if err := next.log.put(step); err != nil {
			return err
		}
	}
	if err := errors.Join(next.pack.sync(), next.log.file.Sync()); err != nil {
		return err
	}
	if s.filled { // else the tree is read again, whatever the index says of what is stored
		if err := next.saveIndex(); err != nil {
			return err
		}
	}
	if err := replaceFile(s.fsys, s.dir, "current", fmt.Appendf(nil, "%d\n", next.generation)); err != nil {
		return err
	}
	holds = true
	failed := s.closeFiles()
	s.pack, s.log, s.generation = next.pack, next.log, next.generation
	return errors.Join(failed, s.removeOthers())
}

// carry copies the pieces of a content, unless they are there, or are to go. What is missing stays so.
func (s *Store) carry(ctx context.Context, to *pack, state State, gone *removal) error {
	if !state.content() || state.Lost || gone.has(state.Ref) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := to.at[state.Ref]; ok {
		return nil
	}
	first, err := s.pack.piece(state.Ref, state.Secret)
	if errors.Is(err, ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	list := slices.Clone(first)
	if state.Size > pieceSize {
		for at := 0; at+len(Ref{}) <= len(list); at += len(Ref{}) {
			ref := Ref(list[at : at+len(Ref{})])
			if gone.has(ref) {
				continue
			}
			piece, err := s.pack.piece(ref, state.Secret)
			if errors.Is(err, ErrMissing) {
				continue
			}
			if err == nil {
				_, err = to.put(piece, state.Secret)
			}
			if err != nil {
				return err
			}
		}
	}
	_, err = to.put(list, state.Secret)
	return err
}

// removeOthers removes the files of the generations before and after this one, of which a crash may have left some.
func (s *Store) removeOthers() error {
	var failed error
	for _, n := range []uint64{s.generation - 1, s.generation + 1} {
		other := &Store{dir: s.dir, fsys: s.fsys, generation: n}
		failed = errors.Join(failed, other.removeFiles())
	}
	return failed
}

// removeFiles removes the files of this generation.
func (s *Store) removeFiles() error {
	var failed error
	for _, what := range []string{"content", "log", "index"} {
		if err := s.fsys.Remove(s.file(what)); !isGone(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

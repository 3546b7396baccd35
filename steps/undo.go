package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// UndoOptions say how an undo is done.
type UndoOptions struct {
	Label   Label // of the step that the undo becomes
	Before  Label // of the step with what changed just before it
	Partial bool  // undo what can be undone, and leave what cannot
	DryRun  bool  // change nothing
	// Only limits it to changes for which it is true; nil: it does not. What one of them was is then removed if its content is not in the
	// store, since it must not stay as it is.
	Only func(*Change) bool
}

// Conflict is a path that is not undone, and why.
type Conflict struct {
	Path, Why string
	Missing   bool // because its content is not in the store
	Aside     bool // it holds nothing else back: a reference or setting of git
}

// Undone is what an undo does.
type Undone struct {
	Changes   []Change   // from what is there to what is restored; of a merged text After is what it was in the step
	Conflicts []Conflict // if there are any, nothing is written unless the undo is a partial one
	Step      *Step      // the undo itself; nil: nothing was written
}

// wanted is what a path is to be after an undo.
type wanted struct {
	State
	merged []byte // the content, if it is not that of Ref
}

// Undo takes back what steps did, path by path, and nothing else: where a file is still as the step left it, it is restored; where
// only other lines of a text changed since, the step's lines are; else it is a Conflict.
func (s *Store) Undo(ctx context.Context, seqs []uint64, options UndoOptions) (*Undone, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if !s.filled {
		return nil, ErrNotFilled
	}
	if _, err := s.next(ctx, options.Before); err != nil {
		return nil, err
	}
	u := &plan{Store: s, want: make(map[string]wanted), removes: options.Only != nil}
	seqs = slices.Clone(seqs)
	slices.SortFunc(seqs, func(a, b uint64) int { return int(int64(b) - int64(a)) })
	for _, seq := range slices.Compact(seqs) {
		step, err := s.recorded(seq)
		if err != nil {
			return nil, err
		}
		changes := step.Changes
		if options.Only != nil {
			changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !options.Only(&c) })
		}
		if err := u.backAll(changes, func(path string) (State, error) { return s.stateAfter(path, seq) }); err != nil {
			return nil, err
		}
	}
	options.Label.Kind, options.Label.Undoes = Undo, seqs
	return u.carryOut(ctx, options)
}

// stateAfter returns what a path was after a step, as far as later steps say.
func (s *Store) stateAfter(path string, seq uint64) (State, error) {
	for _, m := range s.log.marks {
		if m.seq <= seq {
			continue
		}
		step, err := s.recorded(m.seq)
		if err != nil {
			return State{}, err
		}
		for _, c := range step.Changes {
			if c.Path == path {
				return c.Before, nil
			}
		}
	}
	return s.state(path), nil
}

// carryOut does what a plan says, and records it as a step.
func (u *plan) carryOut(ctx context.Context, options UndoOptions) (*Undone, error) {
	u.settle()
	out := &Undone{Changes: u.changes(), Conflicts: u.conflicts}
	if options.DryRun || slices.ContainsFunc(out.Conflicts, Conflict.blocks) && !options.Partial || len(out.Changes) == 0 {
		return out, nil
	}
	raced, err := u.write(ctx)
	out.Conflicts = append(out.Conflicts, raced...)
	step, cutErr := u.next(context.WithoutCancel(ctx), options.Label) // what was written is a step, even if it was stopped
	out.Step = step
	return out, errors.Join(err, cutErr)
}

func (c Conflict) blocks() bool { return !c.Aside }

// plan is what paths are to be.
type plan struct {
	*Store
	copied    *pack // of a copy that is applied; nil: steps are undone
	want      map[string]wanted
	conflicts []Conflict
	removes   bool // what cannot be restored
}

// holder returns where a content is, if it is anywhere.
func (u *plan) holder(s State) *pack {
	if u.copied != nil && !u.pack.covers(s) {
		return u.copied
	}
	return u.pack
}

// now returns what a path is in the plan.
func (u *plan) now(path string) wanted {
	if w, ok := u.want[path]; ok {
		return w
	}
	return wanted{State: u.state(path)}
}

func (u *plan) conflict(path, format string, args ...any) {
	u.conflicts = append(u.conflicts, Conflict{Path: path, Why: fmt.Sprintf(format, args...), Aside: gitPartOf(path) != noGit})
}

// missing notes that what a path was is not in the store.
func (u *plan) missing(path string) {
	u.conflict(path, "what it was is not in the store")
	u.conflicts[len(u.conflicts)-1].Missing = true
}

// back plans to take a change back.
func (u *plan) back(c Change) error {
	now, part := u.now(c.Path), gitPartOf(c.Path)
	switch {
	case part == gitLock, part == gitNote && now.Exists(), part == gitObject && now.Exists() && !now.IsDir():
	case u.leftBy(c, now):
		switch lost := c.Before.content() && !u.holder(c.Before).covers(c.Before); {
		case lost && u.removes:
			c.Before = State{}
		case lost:
			u.missing(c.Path)
			return nil
		}
		u.want[c.Path] = wanted{State: c.Before}
	case now.merged == nil && now.State == c.Before, part == gitLog && now.Exists():
	case !now.Exists():
		u.conflict(c.Path, "it was removed since")
	case !c.After.Exists():
		u.conflict(c.Path, "it was made since")
	case !c.Before.Exists():
		if c.After.IsDir() && now.IsDir() { // with another mode
			u.want[c.Path] = wanted{State: c.Before}
			return nil
		}
		u.conflict(c.Path, "it was changed since")
	case now.kind() != c.After.kind() || now.kind() != c.Before.kind():
		u.conflict(c.Path, "it became something else since")
	default:
		return u.both(c, now)
	}
	return nil
}

// leftBy reports whether a path is as a change has left it. What did not fit in the store then may be stored now.
func (u *plan) leftBy(c Change, now wanted) bool {
	if now.merged != nil || now.State == c.After {
		return now.merged == nil
	}
	if _, planned := u.want[c.Path]; planned || !c.After.Lost {
		return false
	}
	it, _ := u.item(c.Path)
	return it.state.Mode == c.After.Mode && it.stamp.ref() == c.After.Ref
}

// both plans to take a change back from what was changed otherwise too.
func (u *plan) both(c Change, now wanted) error {
	mode, ok := pick(c.After.Mode, now.Mode, c.Before.Mode)
	if !ok {
		u.conflict(c.Path, "its mode was changed since")
		return nil
	}
	index := gitPartOf(c.Path) == gitIndex
	if now.merged == nil && !(index && u.copied != nil) { // what else a copy's index has is about the copy's files
		if ref, ok := pick(c.After.Ref, now.Ref, c.Before.Ref); ok {
			to := now.State
			if ref == c.Before.Ref {
				to = c.Before
			}
			to.Mode = mode
			u.want[c.Path] = wanted{State: to}
			return nil
		}
	}
	if !now.isFile() {
		u.conflict(c.Path, "it was changed since")
		return nil
	}
	var texts [3][]byte
	for i, of := range []wanted{{State: c.After}, {State: c.Before}, now} {
		text, err := u.text(of)
		if errors.Is(err, ErrMissing) {
			u.missing(c.Path)
			return nil
		}
		if err != nil {
			return err
		}
		texts[i] = text
	}
	merge, what := merged, "lines"
	if index {
		what = "entries"
		merge = func(after, before, now []byte) ([]byte, bool) { return mergedIndex(after, now, before) }
	}
	text, ok := merge(texts[0], texts[1], texts[2])
	if !ok {
		u.conflict(c.Path, "the same %s were changed since", what)
		return nil
	}
	to := now
	to.Mode, to.merged = mode, text
	u.want[c.Path] = to
	return nil
}

// pick returns what a value is to be that was changed from before to after, and is now what it is. It returns false if it was changed since to
// something else.
func pick[V comparable](after, now, before V) (V, bool) {
	switch {
	case now == after:
		return before, true
	case after == before, now == before:
		return now, true
	}
	return now, false
}

// text returns the content of a file of the plan, as far as it can be text.
func (u *plan) text(w wanted) ([]byte, error) {
	if w.merged != nil {
		return w.merged, nil
	}
	in, err := u.holder(w.State).content(w.State)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(in, mostText+1))
}

// settle takes out of the plan what other entries of the tree do not allow: a directory that has others in it is kept, and one that
// is missing is made.
func (u *plan) settle() {
	paths := u.paths()
	made := make(map[string]bool) // directories that will have something in them
	for _, path := range paths {
		if dir, _ := split(path); u.want[path].Exists() {
			made[dir] = true
		}
	}
	for _, path := range slices.Backward(paths) { // those below come first
		w := u.want[path]
		if u.state(path).IsDir() && !w.IsDir() && (made[path] || u.keeps(path)) {
			if w.Exists() {
				u.conflict(path, "there are other files in it now")
			}
			delete(u.want, path)
		}
	}
	for _, path := range paths {
		w, ok := u.want[path]
		if !ok || !w.Exists() {
			continue
		}
		for dir, _ := split(path); dir != ""; dir, _ = split(dir) {
			above := u.now(dir)
			if above.IsDir() {
				continue
			}
			if above.Exists() {
				u.conflict(path, "%s is no directory any more", dir)
				delete(u.want, path)
				break
			}
			above.Mode = modeOfNew
			u.want[dir] = above
		}
	}
}

// keeps reports whether entries of a directory stay.
func (u *plan) keeps(path string) bool {
	return slices.ContainsFunc(u.dirs[path], func(it item) bool { return u.now(join(path, it.name)).Exists() })
}

// paths returns those of the plan, sorted, a directory before what is in it.
func (u *plan) paths() []string {
	paths := make([]string, 0, len(u.want))
	for path := range u.want {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// changes returns what the plan changes.
func (u *plan) changes() (list []Change) {
	for _, path := range u.paths() {
		if now, w := u.state(path), u.want[path]; now != w.State || w.merged != nil {
			list = append(list, Change{path, now, w.State})
		}
	}
	return list
}

// source returns the content that a path is to have.
func (u *plan) source(w wanted) (io.Reader, error) {
	if w.merged != nil {
		return bytes.NewReader(w.merged), nil
	}
	return u.holder(w.State).content(w.State)
}

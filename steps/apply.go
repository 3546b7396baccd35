package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrNoChange is the error for paths at which a copy has no change.
var ErrNoChange = errors.New("nothing is changed there")

// Unapplied returns what is changed in a copy and was not applied, at and below some paths, or everywhere.
func (s *Store) Unapplied(ctx context.Context, paths []string) ([]Change, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	return s.differs(paths)
}

func (s *Store) differs(paths []string) (list []Change, _ error) {
	at := make(map[string]Change)
	for _, m := range s.log.marks {
		step, err := s.log.read(m)
		if err != nil {
			return nil, err
		}
		for _, c := range step.Changes {
			if step.Kind == Applied {
				delete(at, c.Path)
				continue
			}
			if was, ok := at[c.Path]; ok {
				c.Before = was.Before
			}
			at[c.Path] = c
		}
	}
	within := func(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") || dir == "" }
	for _, c := range at {
		if c.Before != c.After && (len(paths) == 0 || slices.ContainsFunc(paths, func(dir string) bool { return within(c.Path, dir) })) {
			list = append(list, c)
		}
	}
	for _, dir := range paths {
		if !slices.ContainsFunc(list, func(c Change) bool { return within(c.Path, dir) }) {
			return nil, fmt.Errorf("%w: %q", ErrNoChange, dir)
		}
	}
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// Apply takes over what is changed in a copy of this tree, at and below some paths, or everywhere: what is still as it was when it was
// copied, or last applied, becomes what it is in the copy; a text gets the copy's lines; else it is a Conflict. What git would run or read
// as a setting stays as it is, and is a Conflict that holds back nothing.
func (s *Store) Apply(ctx context.Context, from *Store, paths []string, options UndoOptions) (*Undone, error) {
	for _, one := range []*Store{from, s} {
		if err := one.wait(ctx); err != nil {
			return nil, err
		}
		defer one.release()
		if !one.filled {
			return nil, ErrNotFilled
		}
	}
	changes, err := from.differs(paths)
	if err != nil {
		return nil, err
	}
	if _, err := s.next(ctx, options.Before); err != nil {
		return nil, err
	}
	u := &plan{Store: s, copied: from.pack, want: make(map[string]wanted)}
	left := make(map[string]bool)
	var rest []Change
	for _, c := range changes {
		if at, ok := gitSetting(c); ok {
			if now := s.state(c.Path); now != c.After && !c.After.IsDir() && !(now.IsDir() && !c.After.Exists()) && !left[at] {
				left[at] = true
				u.conflicts = append(u.conflicts, Conflict{Path: at, Why: "what git runs or is set to is not taken over", Aside: true})
			}
			continue
		}
		reverse := Change{c.Path, c.After, c.Before}
		if now := u.now(c.Path); gitPartOf(c.Path) == gitIndex && now.isFile() && c.Before.isFile() && c.After.isFile() {
			if err := u.both(reverse, now); err != nil {
				return nil, err
			}
			continue
		}
		rest = append(rest, reverse)
	}
	if err := u.backAll(rest, s.unchanged); err != nil {
		return nil, err
	}
	options.Label.Kind = Apply
	out, err := u.carryOut(ctx, options)
	if err != nil || options.DryRun || slices.ContainsFunc(u.conflicts, Conflict.blocks) && !options.Partial {
		return out, err
	}
	for _, c := range out.Conflicts {
		left[c.Path] = true
	}
	return out, from.applied(changes, left)
}

// Drop takes back what is changed in a copy and was not applied, at and below some paths, or everywhere.
func (s *Store) Drop(ctx context.Context, paths []string, options UndoOptions) (*Undone, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if !s.filled {
		return nil, ErrNotFilled
	}
	changes, err := s.differs(paths)
	if err != nil {
		return nil, err
	}
	u := &plan{Store: s, want: make(map[string]wanted)}
	if err := u.backAll(changes, s.unchanged); err != nil {
		return nil, err
	}
	options.Label.Kind = Undo
	return u.carryOut(ctx, options)
}

// applied notes which changes of a copy were applied: they are what it is compared with from now on.
func (s *Store) applied(changes []Change, left map[string]bool) error {
	changes = slices.DeleteFunc(changes, func(c Change) bool {
		at, setting := gitSetting(c)
		return left[c.Path] || setting && left[at]
	})
	if len(changes) == 0 {
		return nil
	}
	if err := s.pack.sync(); err != nil {
		return err
	}
	now := time.Now()
	return s.log.append(&Step{Label: Label{Kind: Applied, Began: now}, Seq: s.log.next(), Ended: now, Changes: changes, packed: s.pack.synced})
}

// gitSetting reports whether a path is one that makes git run something, or is a setting of it, and returns what that is: all of a
// repository but its objects, references and index. So is a .git that is no directory: it leads to another repository.
func gitSetting(c Change) (at string, _ bool) {
	names := strings.Split(c.Path, "/")
	i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, ".git") })
	switch {
	case i < 0:
		return "", false
	case i == len(names)-1:
		return c.Path, c.Before.content() || c.After.content()
	}
	switch first := names[i+1]; first {
	case "objects", "refs", "logs", "index", "packed-refs", "COMMIT_EDITMSG", "FETCH_HEAD", "HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD":
		return "", false
	}
	return strings.Join(names[:i+2], "/"), true
}

// unchanged returns what a path is, of which a copy differs in nothing.
func (s *Store) unchanged(path string) (State, error) { return s.state(path), nil }

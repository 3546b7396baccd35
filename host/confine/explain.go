package confine

import (
	"path/filepath"
	"slices"
)

// Shown says what a program sees of the machine's files.
type Shown struct {
	Write  []string // what it may write
	Hidden []string // what is there and is hidden
	Masked []string // files without their content
	Held   []string // what programs outside run, which it may only read
	plan   *Plan
}

// Explain returns what New would plan. Errors are those of New.
func Explain(r Request, has Means) (s Shown, err error) {
	p, t, err := newPlan(r, has)
	if err != nil {
		return s, err
	}
	s = Shown{Write: slices.Clone(t.Write), Masked: t.held, Held: t.outside, plan: p}
	if !t.ReadOnly {
		s.Write = append([]string{t.Dir}, s.Write...)
	}
	for _, path := range slices.Concat(t.hidden, t.Homes.Others) {
		if t.exists(path) && !s.Shows(path) {
			s.Hidden = append(s.Hidden, path)
		}
	}
	slices.Sort(s.Hidden)
	s.Hidden = slices.Compact(s.Hidden)
	return s, nil
}

// Shows reports whether the program sees the machine's own file at a path, which it may not be able to read for other reasons.
func (s *Shown) Shows(path string) bool {
	switch p := s.plan; {
	case p == nil: // it is not confined
		return true
	case !p.Mounts:
		return !slices.ContainsFunc(p.Unread, func(hidden string) bool { return within(path, hidden) })
	case !visible(p.layers, path):
		return false
	default:
		return !slices.ContainsFunc(p.layers, func(l layer) bool {
			return l.kind == file && l.path == path || l.kind == veil && slices.ContainsFunc(l.names, func(name string) bool {
				at := filepath.Join(l.path, name)
				return within(path, at) && within(at, deepest(p.layers, path).path)
			})
		})
	}
}

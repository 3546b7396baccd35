package confine

import (
	"fmt"
	"maps"
	"slices"
)

// findCopies decides what stands at the paths of Request.Copies. Only a mount can put something there.
func (t *tree) findCopies() {
	if !t.has.Mounts {
		return
	}
	paths := slices.Sorted(maps.Keys(t.Copies))
	for _, path := range paths {
		if t.Copies[path] == path && canonical(path) == path && t.isDir(path) && !t.covered(path, t.hidden) {
			t.Places = append(t.Places, Place{Target: path, Write: true})
		}
	}
	for _, path := range paths {
		copied := t.Copies[path]
		if copied == path || canonical(parent(path)) != parent(path) || !t.exists(path) || !t.writes(path) || t.covered(path, t.hidden) {
			continue
		}
		switch {
		case copied == "":
			t.Places = append(t.Places, Place{Target: path})
		case t.isDir(path):
			t.Places = append(t.Places, Place{Source: copied, Target: path, Write: true})
		default:
			t.Places = append(t.Places, Place{Target: parent(copied), Write: true})
			t.links = append(t.links, layer{kind: symlink, path: path, content: copied, held: true})
		}
		t.fixed = append(t.fixed, path)
	}
}

// reviewed returns the places of a request with its review.
func reviewed(r Request, has Means) ([]Place, error) {
	at := r.Review
	if !has.Mounts {
		return nil, fmt.Errorf("%w: to work on a copy in place of %s, the program needs a file tree of its own: this machine lacks mount namespaces", ErrRefused, at.Target)
	}
	for _, path := range []string{at.Source, at.Target} {
		if canonical(path) != path || !isDir(path) {
			return nil, fmt.Errorf("%w: %s is no directory, or is reached through a symbolic link: it is not what the agent began to work on", ErrRefused, path)
		}
	}
	writes := func(path string) bool { return within(path, at.Target) || within(at.Target, path) }
	at.Write = writes(r.Dir) && !r.ReadOnly || slices.ContainsFunc(r.Write, writes)
	return append(slices.Clip(r.Places), at), nil
}

// source returns what stands at a path of the machine: itself, or the same in the copy that is reviewed.
func (t *tree) source(path string) string {
	if rel, ok := relative(path, t.Review.Target); ok {
		return join(t.Review.Source, rel)
	}
	return path
}

// target is the opposite of source.
func (t *tree) target(path string) string {
	if rel, ok := relative(path, t.Review.Source); ok {
		return join(t.Review.Target, rel)
	}
	return path
}

// reviews reports whether a path is of what the program has a copy of.
func (t *tree) reviews(path string) bool {
	return within(path, t.Review.Target) || within(t.Review.Target, path)
}

// writes reports whether a path is in a place that the program may write.
func (t *tree) writes(path string) bool {
	if t.covered(path, t.Read) {
		return false
	}
	return within(path, t.Dir) && !t.ReadOnly || t.covered(path, t.Write) ||
		slices.ContainsFunc(t.Places, func(at Place) bool { return at.Write && at.Source == "" && within(path, at.Target) })
}

// withCopies adds what stands at the paths of Request.Copies. Directories above them cannot be renamed, since the next program, or
// another one, would find something else there.
func (t *tree) withCopies(list []layer) []layer {
	for _, path := range t.fixed {
		if at := deepest(list, parent(path)); at.write {
			list = t.pinned(list, at, path)
		}
	}
	return append(list, t.links...)
}

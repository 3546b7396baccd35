package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/internal/held"
)

// heldText is what a program reads in a held file. For most programs that read such a file it is a comment.
const heldText = "# pwos hides this file from agents. Its user can show it: pwos project allow\n"

// findHeld finds the files of the request's projects that are hidden, and what programs outside run where the program may write, except
// for those that it names.
func (t *tree) findHeld() error {
	if !t.has.Mounts {
		return nil
	}
	dirs := append(slices.Clone(t.Hold), t.Write...)
	if !t.ReadOnly {
		dirs = append(dirs, t.Dir)
	}
	if t.Review.Source != "" { // its own may be others by now
		dirs = append(dirs, t.Review.Source)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		hides := slices.Contains(t.Hold, dir) || dir == t.Review.Source && slices.ContainsFunc(t.Hold, t.reviews)
		if !hides && dir != t.Review.Source && (t.covered(dir, t.hidden) || !isDir(dir)) { // its home
			continue
		}
		found, err := held.Search(dir, slices.Concat(t.Homes.Own, t.Homes.Others))
		switch {
		case errors.Is(err, held.ErrTooMany) && hides:
			return fmt.Errorf("%w: %w", ErrRefused, err)
		case err != nil && !errors.Is(err, held.ErrTooMany):
			return err
		}
		for _, path := range found.Hidden {
			path = t.target(path)
			if hides && !slices.Contains(t.Read, path) && !slices.Contains(t.Write, path) && !t.covered(path, t.hidden) {
				t.held = append(t.held, path)
			}
		}
		for _, path := range found.Outside {
			path = t.target(path)
			if t.writes(path) && !slices.Contains(t.Write, path) && !t.covered(path, t.hidden) {
				t.outside = append(t.outside, path)
			}
		}
	}
	t.outside = slices.DeleteFunc(t.outside, func(path string) bool { return slices.Contains(t.held, path) })
	slices.Sort(t.outside)
	t.outside = slices.Compact(t.outside)
	slices.Sort(t.held)
	t.held = slices.Compact(t.held)
	return nil
}

// Covers returns the files that are hidden where the program may write, and the held ones, each with the directories above it in which
// another program could replace a part of the path. Cover hides what has replaced them, or makes it read-only.
func (p *Plan) Covers() map[string][]string {
	list := map[string][]string{}
	for _, l := range p.layers {
		if !l.held {
			continue
		}
		dir := filepath.Dir(l.path)
		dirs := []string{dir}
		for n := 0; n < held.Depth && dir != p.Dir && dir != "/"; n++ {
			dir = filepath.Dir(dir)
			dirs = append(dirs, dir)
		}
		list[l.path] = dirs
	}
	return list
}

// holds reports whether Covers has any.
func (p *Plan) holds() bool {
	return slices.ContainsFunc(p.layers, func(l layer) bool { return l.held })
}

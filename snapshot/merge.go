package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of a Change.
const (
	Made    = "made"
	Changed = "changed"
	Removed = "removed"
)

// Change is what a restore does to an entry. The entries of a directory that is created or removed as a whole are not
// listed.
type Change struct {
	Path string // relative to the directory
	What string // Made, Changed or Removed
}

// Plan has the changes of a restore.
type Plan struct {
	Changes []Change
	Since   []string // paths that have changed since the agent's end, and are in no other copy
}

// Count returns how many entries are made, changed and removed.
func (p *Plan) Count() (made, changed, removed int64) {
	for _, c := range p.Changes {
		switch c.What {
		case Made:
			made++
		case Changed:
			changed++
		case Removed:
			removed++
		}
	}
	return made, changed, removed
}

// unfinished is the prefix of an entry that a restore has not renamed yet.
const unfinished = ".pwos-undo-"

// merger makes one tree equal to another, or only plans that.
type merger struct {
	copier      // for what is created
	apply  bool // change the tree
	plan   *Plan
	end    time.Time // of the agent
	known  []*folder // other copies of the directory, whose content is not lost
	buffer [2][]byte
}

func newMerger(ctx context.Context, skip skips, plan *Plan, apply bool) *merger {
	const unlimited = 1 << 62
	return &merger{
		copier: copier{ctx: ctx, skip: skip, share: true, limit: unlimited, forced: true}, apply: apply, plan: plan,
		buffer: [2][]byte{make([]byte, 128<<10), make([]byte, 128<<10)},
	}
}

// tree makes have equal to want.
func (m *merger) tree(want, have *folder, rel string) error {
	wanted, err := want.entries()
	if err != nil {
		return err
	}
	there, err := have.entries()
	if err != nil {
		return err
	}
	for len(wanted)+len(there) > 0 {
		var w, h *entry
		switch {
		case len(there) == 0 || len(wanted) > 0 && wanted[0].name < there[0].name:
			w, wanted = wanted[0], wanted[1:]
		case len(wanted) == 0 || there[0].name < wanted[0].name:
			h, there = there[0], there[1:]
		default:
			w, h, wanted, there = wanted[0], there[0], wanted[1:], there[1:]
		}
		name := either(w, h).name
		err := context.Cause(m.ctx)
		if at := path.Join(rel, name); err == nil && !m.skip.match(at) {
			err = named(name, m.entry(want, have, w, h, at))
		}
		if err != nil {
			return err
		}
	}
	if !m.apply {
		return nil
	}
	w, err := want.self()
	if err != nil {
		return err
	}
	h, err := have.self()
	if err != nil {
		return err
	}
	if have.was == nil && sameAttributes(w, h) && w.mtime == h.mtime {
		return nil
	}
	have.was = nil
	return dress(have.File, w, have, ".")
}

func either(a, b *entry) *entry {
	if a != nil {
		return a
	}
	return b
}

// entry makes the entry h of have equal to w of want; one of them may be missing.
func (m *merger) entry(want, have *folder, w, h *entry, rel string) error {
	switch {
	case w == nil && (h.special() || have.mounted(h)): // never copied: its former state is unknown
		return nil
	case w == nil:
		return m.removed(have, h, rel)
	case h == nil:
		m.note(w, rel, Made)
		return m.make(want, have, w)
	case have.mounted(h):
		return errMounted
	case w.dir() && h.dir():
		return m.dir(want, have, w, h, rel)
	case w.kind != h.kind:
		if err := m.mayBeLost(have, h, rel); err != nil {
			return err
		}
		m.note(w, rel, Changed)
		if m.apply && (h.dir() || w.dir()) { // rename replaces neither a directory with a file nor a file with a directory
			if err := have.remove(h); err != nil {
				return err
			}
		}
		return m.make(want, have, w)
	}
	return m.leaf(want, have, w, h, rel)
}

func (m *merger) note(e *entry, rel, what string) {
	if e.dir() {
		rel += "/"
	}
	m.plan.Changes = append(m.plan.Changes, Change{Path: rel, What: what})
}

func (m *merger) removed(have *folder, h *entry, rel string) error {
	if err := m.mayBeLost(have, h, rel); err != nil {
		return err
	}
	m.note(h, rel, Removed)
	if !m.apply {
		return nil
	}
	return have.remove(h)
}

// dir makes a directory equal to another.
func (m *merger) dir(want, have *folder, w, h *entry, rel string) (err error) {
	if !sameAttributes(w, h) {
		m.note(h, rel, Changed)
	}
	old, err := have.openAnyway(h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if m.apply {
		if err := old.widen(h, 0o700); err != nil {
			return err
		}
	}
	source, err := want.openAnyway(w)
	if err != nil {
		return err
	}
	return errors.Join(m.tree(source, old, rel), source.Close())
}

// leaf makes a file or a symbolic link equal to another.
func (m *merger) leaf(want, have *folder, w, h *entry, rel string) error {
	same, err := m.same(want, have, w, h)
	if err != nil {
		return err
	}
	if same && sameAttributes(w, h) {
		return nil
	}
	if !same {
		if err := m.mayBeLost(have, h, rel); err != nil {
			return err
		}
	}
	m.note(h, rel, Changed)
	if !m.apply {
		return nil
	}
	return m.make(want, have, w)
}

// make copies w into have. A directory is not copied atomically: if a restore is interrupted, the next one completes it.
func (m *merger) make(want, have *folder, w *entry) (err error) {
	if !m.apply {
		return nil
	}
	if w.dir() {
		return m.dirFrom(want, have, w)
	}
	temporary := random(unfinished)
	if w.symlink() {
		err = copyLink(want, have, w, temporary)
	} else {
		err = m.file(want, have, w, temporary)
	}
	if err == nil {
		err = have.rename(temporary, w.name)
	}
	if err != nil {
		err = errors.Join(err, ignoreGone(unix.Unlinkat(have.fd, temporary, 0)))
	}
	return err
}

// dirFrom is copier.dir without patterns: skipped entries are not in a copy.
func (m *merger) dirFrom(want, have *folder, w *entry) error {
	plain := m.copier
	plain.skip = nil
	return plain.dir(want, have, w, w.name)
}

// same reports whether two entries of one kind have the same content.
func (m *merger) same(want, have *folder, w, h *entry) (bool, error) {
	if w.symlink() {
		a, err := want.link(w)
		if err != nil {
			return false, err
		}
		b, err := have.link(h)
		return a == b, err
	}
	if w.size != h.size {
		return false, nil
	}
	return m.sameBytes(want, have, w, h)
}

func (m *merger) sameBytes(want, have *folder, w, h *entry) (same bool, err error) {
	b, err := have.readAnyway(h)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	a, err := want.readAnyway(w)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for {
		n, err := io.ReadFull(a, m.buffer[0])
		k, other := io.ReadFull(b, m.buffer[1])
		switch {
		case !bytes.Equal(m.buffer[0][:n], m.buffer[1][:k]):
			return false, nil
		case ended(err) && ended(other):
			return true, context.Cause(m.ctx)
		case err != nil || other != nil:
			return false, errors.Join(err, other)
		}
	}
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// mayBeLost records the files at and below h that have changed since the agent's end and are in no other copy.
func (m *merger) mayBeLost(have *folder, h *entry, rel string) error {
	if m.apply {
		return nil
	}
	if h.dir() && !have.mounted(h) {
		below, err := have.openAnyway(h)
		if err != nil {
			return err
		}
		list, err := below.entries()
		for _, e := range list {
			if err == nil {
				err = named(e.name, m.mayBeLost(below, e, path.Join(rel, e.name)))
			}
		}
		return errors.Join(err, below.Close())
	}
	if !h.changedAfter(m.end) || h.special() || strings.HasPrefix(h.name, unfinished) || m.kept(have, h, rel) {
		return nil
	}
	m.plan.Since = append(m.plan.Since, rel)
	return nil
}

// kept reports whether another copy has the same entry.
func (m *merger) kept(have *folder, h *entry, rel string) bool {
	for _, other := range m.known {
		at, e, err := other.walk(rel)
		if err != nil {
			continue
		}
		same := false
		if e.kind == h.kind {
			same, err = m.same(at, have, e, h)
		}
		if at != other {
			err = errors.Join(err, at.Close())
		}
		if same && err == nil {
			return true
		}
	}
	return false
}

// walk opens the parent of a path below f, and returns its last entry. The parent can be f itself.
func (f *folder) walk(rel string) (*folder, *entry, error) {
	at := f
	for {
		name, rest, more := strings.Cut(rel, "/")
		e, err := at.entry(name)
		if err == nil && !more {
			return at, e, nil
		}
		var next *folder
		if err == nil {
			next, err = at.openAnyway(e)
		}
		if at != f {
			err = errors.Join(err, at.Close())
		}
		if err != nil {
			return nil, nil, err
		}
		at, rel = next, rest
	}
}

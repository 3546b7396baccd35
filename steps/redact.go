package steps

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
)

// Redaction says what a store must not have any more.
type Redaction struct {
	// Value is a content, wherever it is that of a file.
	Value []byte
	// Note returns a note without what is redacted. nil: notes stay.
	Note func(note []byte) ([]byte, error)
	// Path, if it is not empty, is a path of which all contents go that it, or what is below it, had before and after the step From, and
	// since. Empty ones stay: other files have them too.
	Path     string
	From, To uint64 // To is the last record of that step
}

// Redacted is what a redaction has removed.
type Redacted struct {
	Contents int      // that were in the store
	Notes    int      // that are others now
	Paths    []string // that the step has changed, at and below Redaction.Path
}

// Redact removes contents and parts of notes from the store. Steps stay, so that an undo that needs such a content finds that it is missing,
// and their digests are others where notes are. A file that still has the content is stored again once it changes.
func (s *Store) Redact(ctx context.Context, r Redaction) (Redacted, error) {
	if err := s.wait(ctx); err != nil {
		return Redacted{}, err
	}
	defer s.release()
	return s.applyRedaction(ctx, &r)
}

// Redact is Store.Redact for a store that is not open.
func Redact(ctx context.Context, dir string, key []byte, r Redaction) (_ Redacted, err error) {
	s, err := openClosed(dir, key)
	if err != nil || s == nil {
		return Redacted{}, err
	}
	defer func() { err = errors.Join(err, s.closeFiles()) }()
	return s.applyRedaction(ctx, &r)
}

// openClosed opens the files of a store without its tree; nil if there is none.
func openClosed(dir string, key []byte) (*Store, error) {
	s := &Store{dir: dir, fsys: journal.OSFS{}, options: Options{Key: key}, dirs: make(map[string][]item)}
	if known, err := s.readGeneration(); err != nil || !known {
		return nil, err
	}
	return s, s.openFiles()
}

func (s *Store) applyRedaction(ctx context.Context, r *Redaction) (Redacted, error) {
	if err := errors.Join(s.settled(), s.removeOthers()); err != nil {
		return Redacted{}, err
	}
	out, gone, err := s.find(ctx, r)
	if err != nil || out.Contents+out.Notes == 0 {
		return out, err
	}
	drop := make(map[Ref]bool)
	for ref, state := range gone {
		drop[ref] = true
		if state.Size <= pieceSize {
			continue
		}
		list, err := s.pack.piece(ref, state.Secret)
		if err != nil && !errors.Is(err, ErrMissing) {
			return out, err
		}
		for at := 0; at+len(Ref{}) <= len(list); at += len(Ref{}) {
			drop[Ref(list[at:at+len(Ref{})])] = true
		}
	}
	return out, s.rewrite(ctx, s.log.marks, &removal{drop, r.note})
}

// find returns what a redaction removes, and the contents that are in the store.
func (s *Store) find(ctx context.Context, r *Redaction) (out Redacted, gone map[Ref]State, err error) {
	if gone, err = s.named(r.Value); err != nil {
		return out, nil, err
	}
	for _, m := range s.log.marks {
		if err := ctx.Err(); err != nil {
			return out, nil, err
		}
		step, err := s.log.read(m)
		if err != nil {
			return out, nil, err
		}
		if note, err := r.note(step.Note); err != nil {
			return out, nil, err
		} else if !bytes.Equal(note, step.Note) {
			out.Notes++
		}
		if r.Path == "" || step.Seq < r.From {
			continue
		}
		for _, c := range step.Changes {
			if c.Path != r.Path && !strings.HasPrefix(c.Path, r.Path+"/") {
				continue
			}
			if step.Seq <= r.To {
				out.Paths = append(out.Paths, c.Path)
			}
			for _, state := range []State{c.Before, c.After} {
				if state.content() && state.Size > 0 && !state.Lost {
					gone[state.Ref] = state
				}
			}
		}
	}
	slices.Sort(out.Paths)
	out.Paths = slices.Compact(out.Paths)
	maps.DeleteFunc(gone, func(ref Ref, _ State) bool { _, ok := s.pack.at[ref]; return !ok })
	out.Contents = len(gone)
	return out, gone, nil
}

// Holds reports whether the store in a directory, which may be open elsewhere, may have something that a redaction removes.
func Holds(ctx context.Context, dir string, key []byte, r Redaction) (_ bool, err error) {
	c, err := Capture(journal.OSFS{}, dir)
	if err != nil || c == nil {
		return c == nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s := &Store{log: c.log, pack: &pack{at: make(map[Ref]place)}}
	if s.pack.box, err = newBox(key); err != nil {
		return false, err
	}
	if err := frames(c.contents, c.packed, func(at int64, h *header) { s.pack.enter(&h.frame, at) }); err != nil {
		return false, err
	}
	out, _, err := s.find(ctx, &r)
	return out.Contents+out.Notes > 0, err
}

func (r *Redaction) note(note []byte) ([]byte, error) {
	if r.Note == nil {
		return note, nil
	}
	return r.Note(note)
}

// named returns the states of files whose content is a value.
func (s *Store) named(value []byte) (map[Ref]State, error) {
	all := make(map[Ref]State)
	if value == nil {
		return all, nil
	}
	for _, secret := range []bool{false, true} {
		if secret && s.pack.box == nil {
			continue
		}
		state := State{Size: int64(len(value)), Secret: secret}
		var list []byte
		for piece := range slices.Chunk(value, pieceSize) {
			ref, err := s.pack.name(piece, secret)
			if err != nil {
				return nil, err
			}
			list = append(list, ref[:]...)
		}
		if len(list) == sha256.Size {
			state.Ref = Ref(list)
		} else {
			ref, err := s.pack.name(list, secret)
			if err != nil {
				return nil, err
			}
			state.Ref = ref
		}
		all[state.Ref] = state
	}
	return all, nil
}

// removal is what a new generation is made without.
type removal struct {
	contents map[Ref]bool
	note     func([]byte) ([]byte, error)
}

// has reports whether a content goes.
func (w *removal) has(ref Ref) bool { return w != nil && w.contents[ref] }

// of makes the note of a step what it is in the new generation.
func (w *removal) of(step *Step) (err error) {
	if w != nil {
		step.Note, err = w.note(step.Note)
	}
	return err
}

package steps

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promptware-os/pwos/journal"
)

// Kind says what a step stands for.
type Kind uint8

// The kinds of steps.
const (
	Call       Kind = iota + 1 // a tool call of an agent, or a period of activity
	Background                 // what processes of an agent changed between its calls
	Outside                    // what no agent changed
	Undo                       // an undo
	Apply                      // what was taken over from a copy
	Applied                    // in the store of a copy: changes that were taken over, which it is compared with from now on
)

// Label says who made a step, and how.
type Label struct {
	Kind   Kind
	Agent  string
	Number uint64 // among the agent's steps
	Tool   string
	Began  time.Time
	Shared bool     // others were active in the tree at the same time
	Undoes []uint64 // of an Undo: the steps that it has undone, by Seq
	Note   []byte   // what else the caller wants to be kept with it
	Always bool     // it is recorded even if nothing changed; the record does not have this

	// Except names paths whose changes are nobody's, so that no step has them; nil: none. The record does not have this.
	Except func(path string) bool
}

// Step is what happened between two cuts.
type Step struct {
	Label
	Seq     uint64 // in the store, from 1
	Ended   time.Time
	Changes []Change // sorted by path
	Gaps    []Gap    // what it does not cover
	Digest  Ref      // SHA-256 of its record in the store

	packed int64 // bytes of contents that were durable when it was written
}

// mark is where a step is in the log, and what is asked of all steps.
type mark struct {
	seq, number uint64
	kind        Kind
	agent       string
	ended       time.Time
	at, packed  int64
	size        int
}

// log is the file of steps.
type log struct {
	file  journal.File
	size  int64
	marks []mark
}

// openLog opens a file of steps, and cuts an incomplete record at its end.
func openLog(fsys journal.FS, name string) (*log, error) {
	file, err := fsys.Create(name)
	if err != nil {
		return nil, err
	}
	l := &log{file: file}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *log) load() error {
	size, err := l.scan()
	if err == nil && l.size < size {
		if err = errors.Join(l.file.Truncate(l.size), l.file.Sync()); err != nil {
			err = fmt.Errorf("cut incomplete step: %w", err)
		}
	}
	return err
}

// scan enters the whole records, and returns the size of the file.
func (l *log) scan() (int64, error) {
	size, err := l.file.Size()
	if err != nil {
		return 0, err
	}
	all := make([]byte, size)
	if _, err := l.file.ReadAt(all, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read steps: %w", err)
	}
	for rest := all; len(rest) > 0; {
		record, next, err := unseal(rest)
		if err != nil {
			break
		}
		step, ok := decodeStep(&decoder{b: record}, false)
		if !ok || step.Seq != l.next() && len(l.marks) > 0 {
			return 0, fmt.Errorf("the record of step %d is damaged", l.next())
		}
		l.enter(&step, len(rest)-len(next))
		rest = next
	}
	return size, nil
}

// next returns the number of the next step.
func (l *log) next() uint64 {
	if len(l.marks) == 0 {
		return 1
	}
	return l.marks[len(l.marks)-1].seq + 1
}

func (l *log) enter(s *Step, size int) {
	l.marks = append(l.marks, mark{s.Seq, s.Number, s.Kind, s.Agent, s.Ended, l.size, s.packed, size})
	l.size += int64(size)
}

// append writes a step, durably.
func (l *log) append(s *Step) error {
	size := l.size
	if err := l.put(s); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		l.size, l.marks = size, l.marks[:len(l.marks)-1]
		return fmt.Errorf("sync step: %w", err)
	}
	return nil
}

// put writes a step.
func (l *log) put(s *Step) error {
	record := encodeStep(s)
	s.Digest = sha256.Sum256(record)
	var e encoder
	e.signed(s.packed) // no part of the step: it is another one in another generation
	sealed := seal(append(e.b, record...))
	if _, err := l.file.WriteAt(sealed, l.size); err != nil {
		return fmt.Errorf("write step: %w", err)
	}
	l.enter(s, len(sealed))
	return nil
}

// read returns a step that is in the log.
func (l *log) read(m mark) (*Step, error) {
	sealed := make([]byte, m.size)
	if _, err := l.file.ReadAt(sealed, m.at); err != nil {
		return nil, fmt.Errorf("read step %d: %w", m.seq, err)
	}
	record, _, err := unseal(sealed)
	if err != nil {
		return nil, fmt.Errorf("read step %d: %w", m.seq, err)
	}
	s, ok := decodeStep(&decoder{b: record}, true)
	if !ok {
		return nil, fmt.Errorf("the record of step %d is damaged", m.seq)
	}
	return &s, nil
}

func encodeStep(s *Step) []byte {
	var e encoder
	e.number(s.Seq)
	e.number(uint64(s.Kind))
	e.text(s.Agent)
	e.number(s.Number)
	e.text(s.Tool)
	e.time(s.Began)
	e.time(s.Ended)
	e.flags(s.Shared)
	e.number(uint64(len(s.Undoes)))
	for _, seq := range s.Undoes {
		e.number(seq)
	}
	e.text(string(s.Note))
	e.number(uint64(len(s.Changes)))
	for _, c := range s.Changes {
		e.text(c.Path)
		e.state(c.Before)
		e.state(c.After)
	}
	e.number(uint64(len(s.Gaps)))
	for _, g := range s.Gaps {
		e.text(g.Path)
		e.text(g.Why)
	}
	return e.b
}

// decodeStep reads a record, or only what a mark needs of it.
func decodeStep(d *decoder, whole bool) (s Step, ok bool) {
	s.packed = d.signed()
	record := d.b
	s.Seq, s.Kind, s.Agent, s.Number, s.Tool = d.number(), Kind(d.number()), d.text(), d.number(), d.text()
	s.Began, s.Ended = d.time(), d.time()
	if !whole {
		return s, !d.bad
	}
	s.Digest = sha256.Sum256(record)
	s.Shared = d.flag(d.number(), 0)
	for range d.count() {
		s.Undoes = append(s.Undoes, d.number())
	}
	s.Note = []byte(d.text())
	for range d.count() {
		s.Changes = append(s.Changes, Change{d.text(), d.state(), d.state()})
		if d.bad {
			return s, false
		}
	}
	for range d.count() {
		s.Gaps = append(s.Gaps, Gap{d.text(), d.text()})
		if d.bad {
			return s, false
		}
	}
	return s, !d.bad && len(d.b) == 0
}

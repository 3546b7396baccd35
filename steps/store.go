package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/journal"
)

// Options are the bounds of a store, and what it needs of its caller. A bound of 0 is none.
type Options struct {
	FS       journal.FS             // nil: that of the operating system
	Key      []byte                 // seals secret contents; without it they are not stored
	Secret   func(path string) bool // names the files whose content is secret
	MaxFile  int64                  // bytes of a file that are stored
	MaxFiles int64                  // entries of the tree
	MaxBytes int64                  // bytes of the contents on disk

	// Origin returns the store of the tree that this one is a copy of, until release is called: it has what was in files of the copy before
	// they were changed. nil: it is no copy, or the tree is gone.
	Origin func(ctx context.Context) (origin *Store, release func(), err error)
}

// Store keeps the steps of one tree. Its methods may be called at once; they take turns.
type Store struct {
	dir, root  string
	options    Options
	fsys       journal.FS
	turn       chan struct{} // has an element while no method runs
	generation uint64
	pack       *pack
	log        *log
	watch      *watch
	dirs       map[string][]item // what the tree was at the last step, by directory
	count      int64             // entries in them
	filled     bool              // the tree is known
	at         [2]uint64         // device and inode of the tree's directory
	walk       bool              // the next cut walks the tree
	uncovered  map[string]bool   // directories that are not covered, since the tree has too many files
	full       bool              // contents were not stored, since there were too many bytes
	touched    map[string]bool   // files to be read again, and the directories that they are in
	pending    map[string]State  // what was at the last step where something is found to have changed since
}

// Open opens the store of a tree in a directory of its own, which it creates. Fill must follow before the first Cut.
func Open(dir, root string, options Options) (_ *Store, err error) {
	s := &Store{
		dir: dir, root: root, options: options, fsys: options.FS, turn: make(chan struct{}, 1), generation: 1,
		dirs: make(map[string][]item), touched: make(map[string]bool), pending: make(map[string]State), walk: true,
	}
	if s.fsys == nil {
		s.fsys = journal.OSFS{}
	}
	if err := s.fsys.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := s.fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	known, err := s.readGeneration()
	if err == nil && !known {
		err = replaceFile(s.fsys, dir, "current", []byte("1\n"))
	}
	if err != nil {
		return nil, err
	}
	if err := s.openFiles(); err != nil {
		return nil, err
	}
	for _, items := range s.dirs {
		s.count += int64(len(items))
	}
	s.watch = newWatch()
	s.turn <- struct{}{}
	return s, nil
}

// readGeneration reads which generation holds. It returns false if there is none yet.
func (s *Store) readGeneration() (bool, error) {
	path := filepath.Join(s.dir, "current")
	text, err := readFile(s.fsys, path)
	if err != nil || text == nil {
		return false, err
	}
	if s.generation, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// file returns the path of a file of this generation.
func (s *Store) file(what string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%d", what, s.generation))
}

func (s *Store) openFiles() (err error) {
	if s.log, err = openLog(s.fsys, s.file("log")); err != nil {
		return err
	}
	known, packed, err := s.loadIndex()
	if err == nil {
		s.pack, err = openPack(s.fsys, s.file("content"), s.options.Key, packed)
	}
	if err != nil {
		return errors.Join(err, s.log.file.Close())
	}
	s.filled = known
	if err = s.fsys.SyncDir(s.dir); err != nil {
		return errors.Join(err, s.closeFiles())
	}
	return nil
}

func (s *Store) closeFiles() error { return errors.Join(s.pack.Close(), s.log.file.Close()) }

// Close saves what is known of the tree, and closes the store.
func (s *Store) Close() error {
	<-s.turn
	var err error
	if s.filled && len(s.pending) == 0 { // else the index of before says more
		err = errors.Join(s.pack.sync(), s.saveIndex())
	}
	return errors.Join(err, s.watch.Close(), s.closeFiles())
}

// wait waits for the turn.
func (s *Store) wait(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the store of %s: %w", s.root, ctx.Err())
	}
}

func (s *Store) release() { s.turn <- struct{}{} }

// Fill walks the whole tree. The first time it stores everything; later it returns a step, with a label, of what changed since the last
// one, or nil.
func (s *Store) Fill(ctx context.Context, label Label) (*Step, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if err := s.sweep(); err != nil {
		return nil, err
	}
	s.walk = true
	if s.filled {
		label.Began = s.lastEnd()
		return s.next(ctx, label)
	}
	if _, err := s.look(ctx); err != nil {
		return nil, err
	}
	if err := s.pack.sync(); err != nil {
		return nil, err
	}
	s.filled = true
	return nil, s.saveIndex()
}

// lastEnd returns when the last step ended.
func (s *Store) lastEnd() time.Time {
	if n := len(s.log.marks); n > 0 {
		return s.log.marks[n-1].ended
	}
	return time.Time{}
}

// Cut records what changed since the last cut. The step is nil if nothing did, unless its label says Always.
func (s *Store) Cut(ctx context.Context, label Label) (*Step, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if !s.filled {
		return nil, ErrNotFilled
	}
	return s.next(ctx, label)
}

// ErrNotFilled is the error for a store that does not know its tree yet.
var ErrNotFilled = errors.New("the tree is not read yet")

func (s *Store) next(ctx context.Context, label Label) (*Step, error) {
	gaps, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	step := &Step{Label: label, Seq: s.log.next(), Ended: time.Now(), Gaps: gaps}
	if step.Began.IsZero() {
		step.Began = step.Ended
	}
	for path, before := range s.pending {
		if after := s.state(path); before != after && (label.Except == nil || !label.Except(path)) {
			step.Changes = append(step.Changes, Change{path, before, after})
		}
	}
	if len(step.Changes) == 0 && len(gaps) == 0 && !label.Always {
		clear(s.pending)
		return nil, nil
	}
	slices.SortFunc(step.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	if err := s.fetch(ctx, step.Changes); err != nil {
		return nil, err
	}
	if err := s.pack.sync(); err != nil { // contents are durable before the record that names them
		return nil, err
	}
	step.packed = s.pack.synced
	if err := s.log.append(step); err != nil {
		return nil, err
	}
	clear(s.pending)
	return step, nil
}

// Events returns how many events the system has told of since the store was opened, and whether it tells of all: if not, only a cut
// finds out whether anything changed.
func (s *Store) Events() (n uint64, all bool) { return s.watch.count() }

// Touch makes the next cut read a file again, whatever stat says of it: it was mapped to be written.
func (s *Store) Touch(ctx context.Context, path string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	defer s.release()
	s.touched[path] = true
	dir, _ := split(path)
	s.touched[dir] = true
	return nil
}

// Steps returns the steps from a number on, at most limit, oldest first, without their changes.
func (s *Store) Steps(ctx context.Context, from uint64, limit int) ([]Step, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	i, _ := slices.BinarySearchFunc(s.log.marks, from, func(m mark, seq uint64) int { return int(int64(m.seq) - int64(seq)) })
	var out []Step
	for _, m := range s.log.marks[i:] {
		if len(out) == limit {
			break
		}
		out = append(out, Step{Label: Label{Kind: m.kind, Agent: m.agent, Number: m.number}, Seq: m.seq, Ended: m.ended})
	}
	return out, nil
}

// ErrNoStep is the error for a step that is not in the store.
var ErrNoStep = errors.New("there is no such step")

// Step returns a step whole.
func (s *Store) Step(ctx context.Context, seq uint64) (*Step, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	return s.recorded(seq)
}

func (s *Store) recorded(seq uint64) (*Step, error) {
	i, found := slices.BinarySearchFunc(s.log.marks, seq, func(m mark, seq uint64) int { return int(int64(m.seq) - int64(seq)) })
	if !found {
		return nil, fmt.Errorf("%w: %d", ErrNoStep, seq)
	}
	return s.log.read(s.log.marks[i])
}

// Content returns the content of a file, or the target of a link, in a state of a step.
func (s *Store) Content(ctx context.Context, state State) ([]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	in, err := s.pack.content(state)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// Status says how the store works at the moment.
type Status struct {
	Files, Bytes int64 // entries of the tree, bytes of contents and steps on disk
	Unwatched    error // why each cut walks the whole tree; nil: it does not
	Partial      error // why not all that changes is kept; nil: it is
}

// Status returns the status.
func (s *Store) Status(ctx context.Context) (Status, error) {
	if err := s.wait(ctx); err != nil {
		return Status{}, err
	}
	defer s.release()
	status := Status{s.count, s.pack.size + s.log.size, s.watch.why(), nil}
	if len(s.uncovered) > 0 {
		status.Partial = fmt.Errorf("%w: more than %d files, not all of which are covered", ErrTooLarge, s.options.MaxFiles)
	}
	if s.full {
		status.Partial = errors.Join(status.Partial, fmt.Errorf("the store has more than %d bytes: what changes is not stored", s.options.MaxBytes))
	}
	return status, nil
}

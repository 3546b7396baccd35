package trees

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/steps"
)

// Names of files in the directory of a store, beside those of package steps.
const (
	rootName = "root" // path of the tree
	usedName = "used" // the programs that work in it; its time is when that last changed
)

// tree is a directory with a store.
type tree struct {
	*Trees
	root, dir string

	filled chan struct{} // is closed once the tree was read, or cannot be
	store  *steps.Store  // nil: it cannot be kept; set before filled is closed
	failed error         // why
	tried  time.Time     // when that turned out

	turn    chan struct{} // has an element while the tree is in use
	live    map[int64]*program
	open    map[*call]bool
	period  period
	since   time.Time // of the last cut
	left    time.Time // when the last program left
	trouble error     // why the last cut failed; nil: it did not
	closed  bool
	frozen  bool          // its programs are stopped
	held    []*steps.Step // cuts with files that could not be set aside yet

	original *tree // of a copy: what it is a copy of, while both are in use together

	missed atomic.Bool // a program was there before the tree was read: the next step says so

	// active are the programs that were busy at the last cut: what changes until the next one can be theirs.
	active map[*program]bool

	near []string // programs and calls of trees inside and around this one that changed something since the last cut; Trees.mu guards it
}

// period is one of activity of programs without hooks.
type period struct {
	began, last time.Time
	events      uint64
}

// used is an element of the file usedName.
type used struct {
	Agent string `json:"agent"`
	PID   int64  `json:"pid"`
}

var usedList = sync.OnceValue(schema.TypeOf[[]used])

// fill opens the store and reads the tree.
func (one *tree) fill() {
	defer close(one.filled)
	one.turn <- struct{}{}
	defer one.release()
	before, err := one.prepare()
	if err == nil {
		one.store, err = steps.Open(one.dir, one.root, steps.Options{
			Key: one.key, Secret: secret, MaxFile: one.MaxFile, MaxFiles: one.MaxFiles, MaxBytes: one.MaxBytes,
			Origin: one.origin(),
		})
	}
	if err == nil {
		err = one.read(before)
	}
	if err == nil {
		one.left = time.Now() // it is closed again if nobody enters
		if len(before) > 0 {
			one.note() // what they did is recorded: what changes after this kernel is not theirs
		}
	}
	if err != nil && one.store != nil {
		err = errors.Join(err, one.give())
	}
	if one.failed, one.tried = err, time.Now(); err != nil && one.ending.Err() == nil {
		one.log.Warn("steps of a directory are not kept", "tree", one.root, "error", err)
	}
}

// give closes the store of a tree that cannot be kept, and removes it if it has no steps: what was stored before the tree turned out to
// be too large is of no use.
func (one *tree) give() error {
	list, err := one.store.Steps(context.Background(), 1, 1)
	err = errors.Join(err, one.store.Close())
	one.store = nil
	if err == nil && len(list) == 0 {
		err = rmtree.Dir(one.dir)
	}
	return err
}

// ready reports whether the tree was read, or cannot be.
func (one *tree) ready() bool {
	select {
	case <-one.filled:
		return true
	default:
		return false
	}
}

// again reports whether a tree that could not be read is to be tried again.
func (one *tree) again() bool {
	return one.ready() && one.failed != nil && time.Since(one.tried) > idle
}

// prepare makes the directory of the store. It returns the programs that worked in the tree when the last kernel ended.
func (one *tree) prepare() (before []used, _ error) {
	if err := os.MkdirAll(one.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make store of steps: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(one.dir, rootName))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && string(text) != one.root && strings.HasPrefix(one.root, string(text)): // a crash left it so
		if err := os.WriteFile(filepath.Join(one.dir, rootName), []byte(one.root), 0o600); err != nil {
			return nil, fmt.Errorf("make store of steps: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("open store of steps: %w", err)
	case string(text) != one.root:
		return nil, fmt.Errorf("its store %s is that of %s", one.dir, text)
	}
	text, err = os.ReadFile(filepath.Join(one.dir, usedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open store of steps: %w", err)
	}
	list, bad := usedList().Decode(text)
	if bad != nil { // a kernel was killed while it wrote it
		one.log.Warn("who worked in a directory is not known", "tree", one.root, "error", bad)
		return nil, nil
	}
	return *list.(*[]used), nil
}

// read reads the tree. What changed since the last kernel ended is what those did that worked in it then.
func (one *tree) read(before []used) (err error) {
	label, about := steps.Label{Kind: steps.Outside}, (*schema.StepState)(nil)
	if len(before) > 0 {
		about = one.about(before[0].Agent, before[0].PID, schema.StepBackground, time.Now())
		unknown := resultUnknown
		about.Result = &unknown
		about.Shared = true // a person, and programs outside, may have changed something while no kernel ran
		about.With = append(about.With, outside)
		for _, other := range before[1:] {
			about.With = append(about.With, other.Agent)
		}
	}
	if err = one.recover(); err != nil {
		return err
	}
	if about != nil {
		about.Step = one.next(about.Agent)
		if label, err = labelled(about); err != nil {
			return err
		}
	}
	made, err := one.store.Fill(one.ending, label)
	if err != nil || about == nil {
		return err
	}
	if made == nil {
		one.unused(about.Agent, about.Step)
		return nil
	}
	if err := complete(about, []*steps.Step{made}); err != nil {
		return err
	}
	one.later(about)
	return nil
}

// recover journals the steps that are in the store, and not in the journal: the kernel ended in between.
func (one *tree) recover() error {
	view := one.view()
	const some = 1000
	type key struct {
		agent  string
		number uint64
	}
	journaled := make(map[key]uint64) // the last cut of each step; numbers do not tell: a call that began before others may end after them
	records, since := view.Of(""), uint64(0)
	for _, r := range records {
		if r.Tree != one.root || len(r.Cuts) == 0 {
			continue
		}
		first, last := ends(r)
		journaled[key{r.Agent, uint64(r.Step)}] = last
		if since == 0 || first < since {
			since = first
		}
	}
	forgotten := func(s *steps.Step) bool {
		return len(records) >= step.MaxKept && int64(s.Number) <= view.Last(s.Agent) && (since == 0 || s.Seq < since)
	}
	lost := make(map[key][]*steps.Step)
	var order []key
	for from := uint64(1); ; {
		list, err := one.store.Steps(one.ending, from, some)
		if err != nil {
			return err
		}
		for i := range list {
			s := &list[i]
			from = s.Seq + 1
			k := key{s.Agent, s.Number}
			if s.Agent == "" || s.Seq <= journaled[k] || forgotten(s) {
				continue
			}
			whole, err := one.store.Step(one.ending, s.Seq)
			if err != nil {
				return err
			}
			if lost[k] == nil {
				order = append(order, k)
			}
			lost[k] = append(lost[k], whole)
		}
		if len(list) < some {
			break
		}
	}
	for _, k := range order {
		cuts := lost[k]
		about, err := noted(cuts[len(cuts)-1])
		if err != nil {
			return err
		}
		unknown := resultUnknown
		about.Result = &unknown
		if err := complete(about, cuts); err != nil {
			return err
		}
		one.known(k.agent, int64(k.number))
		one.later(about)
	}
	return nil
}

// secret reports whether the content of a file is stored sealed: of those that agents do not see until their user shows them.
func secret(name string) bool { return held.Named(path.Base(name)) }

// take waits for the turn. It fails if the tree cannot be kept, or is closed.
func (one *tree) take(ctx context.Context) error {
	select {
	case <-one.filled:
	case <-ctx.Done():
		return ctx.Err()
	}
	if one.store == nil {
		return one.failed
	}
	select {
	case one.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("it is in use: %w", ctx.Err())
	}
	if one.closed {
		one.release()
		return errClosed
	}
	return nil
}

var errClosed = errors.New("the store is closed")

// takeRead waits for the turn, and returns true, if the tree was read and is kept.
func (one *tree) takeRead() bool { return one.ready() && one.take(context.Background()) == nil }

func (one *tree) release() { <-one.turn }

// uncovered says what is not kept, and why; "": nothing.
func (one *tree) uncovered() string {
	if !one.ready() {
		return "it is still being read: what is changed before that cannot be undone"
	}
	if one.failed != nil {
		return one.failed.Error()
	}
	return ""
}

// enter notes a program that is about to start.
func (one *tree) enter(p *program) {
	if !one.ready() { // the program waits no longer than it has to
		one.alive.Go(func() {
			if one.take(one.ending) == nil {
				defer one.release()
				one.enterNow(p)
			}
		})
		return
	}
	if one.take(one.ending) != nil {
		return
	}
	defer one.release()
	one.enterNow(p)
}

func (one *tree) enterNow(p *program) {
	if p.gone.Load() || one.live[p.pid] == p {
		return
	}
	one.cut(time.Now(), nil) // what was before is not its
	one.live[p.pid] = p
	if p.late.Load() {
		one.missed.Store(true)
	}
	one.note()
}

// note writes which programs work in the tree. It is only for what a kernel that is killed leaves, so it is not synced.
func (one *tree) note() {
	list := make([]used, 0, len(one.live))
	for _, p := range one.live {
		list = append(list, used{p.agent, p.pid})
	}
	text, err := schema.Marshal(&list)
	if err == nil {
		err = os.WriteFile(filepath.Join(one.dir, usedName), text, 0o600)
	}
	if err != nil {
		one.log.Warn("who works in a directory is not stored", "tree", one.root, "error", err)
	}
}

// leave records the last step of a program, whose calls are over.
func (one *tree) leave(p *program) {
	if !one.takeRead() {
		return
	}
	defer one.release()
	if one.live[p.pid] != p {
		return
	}
	now := time.Now()
	one.cut(now, p)
	delete(one.live, p.pid)
	one.left = now
	one.note()
}

// settle records what happened until now, except for tool calls that are not over.
func (one *tree) settle(ctx context.Context) error {
	if !one.ready() {
		return nil
	}
	if err := one.take(ctx); err != nil {
		return ctx.Err() // else it is not kept
	}
	defer one.release()
	if len(one.live) > 0 {
		one.cut(time.Now(), nil)
	}
	return nil
}

// tick ends a period of activity, and closes a tree that nobody works in.
func (one *tree) tick(now time.Time) {
	select {
	case one.turn <- struct{}{}:
	default:
		return // it is in use
	}
	defer one.release()
	if one.store == nil || one.closed {
		return
	}
	if len(one.live) == 0 {
		if !one.left.IsZero() && now.Sub(one.left) > idle {
			one.retire()
		}
		return
	}
	events, told := one.store.Events()
	p := &one.period
	switch {
	case !told || !one.unhooked():
		*p = period{events: events}
	case events == p.events && p.began.IsZero():
	case p.began.IsZero():
		*p = period{began: now, last: now, events: events}
	case events != p.events && now.Sub(p.began) < longest:
		p.last, p.events = now, events
	case now.Sub(p.last) >= quiet, now.Sub(p.began) >= longest:
		one.cut(now, nil)
	}
}

// retire closes the tree, unless a program is about to enter it.
func (one *tree) retire() {
	one.mu.Lock() // nobody gets it any more
	defer one.mu.Unlock()
	for _, p := range one.programs {
		if slices.Contains(p.trees, one) {
			return
		}
	}
	delete(one.trees, one.root)
	one.shut()
}

// unhooked reports whether a program works here that does not say when a tool call begins.
func (one *tree) unhooked() bool {
	for _, p := range one.live {
		if p.hooked.Load() == nil {
			return true
		}
	}
	return false
}

// collect forgets old steps.
func (one *tree) collect(ctx context.Context, before time.Time) error {
	if one.copyAt(one.root) != nil || one.take(ctx) != nil {
		return nil // a copy is needed as it began, or it is not kept
	}
	defer one.release()
	return one.store.Collect(ctx, before, one.KeepBytes)
}

// close closes the store.
func (one *tree) close() {
	<-one.filled
	one.turn <- struct{}{}
	defer one.release()
	if one.store != nil && !one.closed {
		one.shut()
	}
}

func (one *tree) shut() {
	one.closed = true
	if err := one.store.Close(); err != nil {
		one.log.Warn("store of steps not closed", "tree", one.root, "error", err)
	}
}

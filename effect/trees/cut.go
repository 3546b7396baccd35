package trees

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/steps"
)

// Results of a step.
const (
	resultOK      = "ok"
	resultFailed  = "failed"
	resultUnknown = "unknown"
)

// author is what may have made what changed since the last cut: a tool call, or a program by itself.
type author struct {
	call  *call // nil: none
	about *schema.StepState
	maybe bool // or a person, or a program outside
}

func (a *author) name() string {
	if a.call != nil {
		return fmt.Sprintf("%s:%d", a.about.Agent, a.about.Step)
	}
	return a.about.Agent
}

// outside is in the list of those that share a step if a person, or a program outside, may have changed something too.
const outside = "outside"

// authors returns who may have changed something since the last cut. Tool calls are first; only they have a number yet. Programs with
// hooks that have no processes besides themselves count only if there are no others: most of the time they wait.
func (one *tree) authors(now time.Time, active map[*program]bool) (list []author) {
	busy := make(map[*program]bool)
	for c := range one.open {
		busy[c.program] = true
		list = append(list, author{call: c, about: c.state(one)})
	}
	slices.SortFunc(list, func(a, b author) int { return cmp.Compare(a.about.Step, b.about.Step) })
	var others, waiting []author
	for _, p := range one.live {
		switch {
		case busy[p]:
		case p.hooked.Load() == nil:
			others = append(others, author{about: one.about(p.agent, p.pid, schema.StepActivity, now)})
		case active[p] || one.active[p]: // what has ended since can have done it too
			others = append(others, author{about: one.about(p.agent, p.pid, schema.StepBackground, now)})
		default:
			a := author{about: one.about(p.agent, p.pid, schema.StepBackground, now), maybe: true}
			a.about.Shared, a.about.With = true, []string{outside}
			waiting = append(waiting, a)
		}
	}
	if len(list)+len(others) == 0 {
		others = waiting
	}
	slices.SortFunc(others, func(a, b author) int { return cmp.Compare(a.about.PID, b.about.PID) })
	return append(list, others...)
}

// affected returns the programs that may work in a tree: its own, and those of trees in it or around it.
func (t *Trees) affected(in *tree) map[int64]*program {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make(map[int64]*program)
	for pid, p := range t.programs {
		if !p.gone.Load() && slices.ContainsFunc(p.trees, func(o *tree) bool { return within(in.root, o.root) || within(o.root, in.root) }) {
			list[pid] = p
		}
	}
	return list
}

// neighbours returns the names of programs of trees inside and around this one that may have changed something here.
func (one *tree) neighbours() (names []string) {
	one.mu.Lock()
	names, one.near = one.near, nil
	one.mu.Unlock()
	for _, p := range one.affected(one) {
		if slices.Contains(p.trees, one) {
			continue
		}
		one.mu.Lock()
		for _, c := range p.calls {
			if n := c.number.Load(); n > 0 {
				names = append(names, fmt.Sprintf("%s:%d", p.agent, n))
			}
		}
		calls := len(p.calls)
		one.mu.Unlock()
		if hooked := p.hooked.Load(); calls == 0 && (hooked == nil || one.agents.Busy(p.pid, *hooked)) {
			names = append(names, p.agent)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// passOn notes in the trees inside and around this one who may have changed something there too.
func (one *tree) passOn(authors []author) {
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, other := range one.trees {
		if other == one || !within(one.root, other.root) && !within(other.root, one.root) {
			continue
		}
		for i := range authors {
			a := &authors[i]
			p := one.programs[a.about.PID]
			if p != nil && !slices.Contains(p.trees, other) && !slices.Contains(other.near, a.name()) && len(other.near) < maxOpen {
				other.near = append(other.near, a.name())
			}
		}
	}
}

// busy returns the programs with hooks that have processes besides themselves.
func (one *tree) busy() map[*program]bool {
	active := make(map[*program]bool)
	for _, p := range one.live {
		if hooked := p.hooked.Load(); hooked != nil && one.agents.Busy(p.pid, *hooked) {
			active[p] = true
		}
	}
	return active
}

// about returns what is known of a step that is no tool call, except for its number.
func (one *tree) about(agent string, pid int64, kind string, now time.Time) *schema.StepState {
	began := now
	for _, at := range []time.Time{one.since, one.period.began} {
		if !at.IsZero() {
			began = at
		}
	}
	return &schema.StepState{Agent: agent, PID: pid, Tree: one.root, Kind: kind, Tool: kind, Began: began.UnixMilli()}
}

// cut records what changed since the last cut, as that of those who may have changed it. What only started programs is no step of a
// program yet, unless it is leaving.
func (one *tree) cut(now time.Time, leaving *program) {
	active := one.busy()
	authors := one.authors(now, active)
	events, _ := one.store.Events()
	one.period, one.since = period{events: events}, now
	label := steps.Label{Kind: steps.Outside}
	others := one.neighbours()
	for i := range authors {
		a := &authors[i]
		if len(others) > 0 {
			a.about.Shared, a.about.With = true, append(a.about.With, others...)
		}
		for j := range authors {
			if j != i {
				a.about.Shared, a.about.With = true, append(a.about.With, authors[j].name())
			}
		}
		if a.call == nil {
			one.taken(a.about, nil)
			a.about.Step = one.next(a.about.Agent)
		}
	}
	var err error
	if len(authors) > 0 {
		label, err = labelled(authors[0].about)
		label.Always = slices.ContainsFunc(authors, func(a author) bool {
			last := a.call != nil || leaving != nil && a.about.PID == leaving.pid
			return last && !a.maybe && a.about.Programs.Count+a.about.Connections.Count > 0
		})
	}
	label.Except = one.copied
	var made *steps.Step
	if err == nil {
		made, err = one.store.Cut(context.Background(), label)
	}
	if one.trouble = err; err != nil {
		one.log.Warn("what changed is recorded with the next step", "tree", one.root, "error", err)
		maps.Copy(active, one.active)
	}
	one.active = active
	cuts := []*steps.Step{made}
	if made != nil {
		one.passOn(authors)
		if len(authors) > 0 && one.holds(made) {
			defer one.freeze(one)()
			label.Always = false
			if more, err := one.store.Cut(context.Background(), label); err != nil { // what changed until they were stopped is theirs too
				one.log.Warn("what changed is recorded with the next step", "tree", one.root, "error", err)
			} else if more != nil {
				cuts = append(cuts, more)
			}
		}
	}
	for i := range authors {
		a := &authors[i]
		switch {
		case a.call != nil && made != nil:
			a.call.mu.Lock()
			a.call.cuts[one] = append(a.call.cuts[one], cuts...)
			a.call.mu.Unlock()
			for _, other := range a.about.With {
				a.call.shares(other)
			}
		case a.call != nil:
		case made == nil:
			one.unused(a.about.Agent, a.about.Step)
			one.back(a.about)
		default:
			a.about.Ended = now.UnixMilli()
			one.finished(a.about, cuts)
		}
	}
	if made != nil && len(authors) > 0 {
		one.setAside(&authors[0], cuts, now)
	}
}

// copied reports whether a program sees a private copy at a path, or above it.
func (one *tree) copied(path string) bool {
	at := filepath.Join(one.root, path)
	for _, p := range one.live {
		for _, copied := range p.copies {
			if within(copied, at) {
				return true
			}
		}
	}
	return false
}

// finished notes a step to be recorded.
func (one *tree) finished(about *schema.StepState, cuts []*steps.Step) {
	if err := complete(about, cuts); err != nil {
		one.log.Error("a step is not recorded", "tree", one.root, "agent", about.Agent, "step", about.Step, "error", err)
		return
	}
	if one.missed.CompareAndSwap(true, false) {
		about.Files.Missed++
		item(&about.Files, ".", "missed")
	}
	one.later(about)
}

// unused gives back the number of a step that did not become one.
func (t *Trees) unused(agent string, number int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.numbers[agent] == number {
		t.numbers[agent]--
	}
}

// labelled returns the label of a step in a store.
func labelled(about *schema.StepState) (steps.Label, error) {
	note, err := schema.Marshal(about)
	if err != nil {
		return steps.Label{}, fmt.Errorf("encode step: %w", err)
	}
	kind := map[string]steps.Kind{schema.StepBackground: steps.Background, schema.StepOfUndo: steps.Undo, schema.StepOfApply: steps.Apply}[about.Kind]
	if kind == 0 {
		kind = steps.Call
	}
	return steps.Label{
		Kind: kind, Agent: about.Agent, Number: uint64(about.Step), Tool: about.Tool, Began: time.UnixMilli(about.Began),
		Shared: about.Shared, Note: note,
	}, nil
}

// noted returns what was known of a step when it was cut.
func noted(cut *steps.Step) (*schema.StepState, error) {
	about, err := schema.StepEnded.Input().Decode(cut.Note)
	if err != nil {
		return nil, fmt.Errorf("read the note of step %s:%d: %w", cut.Agent, cut.Number, err)
	}
	return about.(*schema.StepState), nil
}

// recordSize bounds a step in the journal, in bytes.
const recordSize = 10_000

// complete adds to what is known of a step what its cuts in a store say.
func complete(about *schema.StepState, cuts []*steps.Step) error {
	whole := sha256.New()
	for _, cut := range cuts {
		whole.Write(cut.Digest[:])
	}
	if n := len(cuts); n > 0 {
		about.Cuts = []int64{int64(cuts[0].Seq), int64(cuts[n-1].Seq)}
	}
	if about.Ended == 0 {
		about.Ended = cuts[len(cuts)-1].Ended.UnixMilli()
	}
	about.Digest = "sha256-" + hex.EncodeToString(whole.Sum(nil))
	about.Files = filesOf(cuts)
	list := []schema.StepState{*about}
	if err := step.Fit(list, recordSize); err != nil {
		return err
	}
	*about = list[0]
	return nil
}

// filesOf returns what cuts did together to files.
func filesOf(cuts []*steps.Step) (f schema.StepFiles) {
	for _, c := range steps.Composed(cuts) {
		count(&f, &c)
	}
	for _, cut := range cuts {
		for _, gap := range cut.Gaps {
			f.Missed++
			item(&f, gap.Path, "missed")
		}
	}
	return f
}

// count adds a change to what is done to files. That of a directory's mode counts, that it has other entries does not.
func count(f *schema.StepFiles, c *steps.Change) {
	if marked(c) {
		if f.Marked.Count++; len(f.Marked.Items) < schema.MaxStepMarks {
			f.Marked.Items = append(f.Marked.Items, clip.Text(text(c.Path), longestMark))
		}
	}
	switch {
	case !c.Before.Exists():
		f.Made++
		item(f, c.Path, "made")
	case !c.After.Exists():
		f.Removed++
		item(f, c.Path, "removed")
	default:
		f.Changed++
		item(f, c.Path, "changed")
	}
}

// longestMark bounds a path of schema.StepFiles.Marked, in bytes: all steps that are remembered have them.
const longestMark = 256

// marked reports whether a change is one of what tools outside run or obey: a repository only when it is made.
func marked(c *steps.Change) bool {
	if !c.After.Exists() || !held.Marked(c.Path) {
		return false
	}
	return !c.Before.Exists() || filepath.Base(c.Path) != ".git"
}

func item(f *schema.StepFiles, path, what string) {
	if len(f.Items) < schema.MaxStepItems {
		f.Items = append(f.Items, schema.StepFile{Path: clip.Text(text(path), longestPath), What: what})
	}
}

// longestPath bounds a path in a record, in bytes.
const longestPath = 4096

// text returns a path as text: bytes that are none are escaped.
func text(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for i, r := range path {
		if r == utf8.RuneError && !strings.HasPrefix(path[i:], string(utf8.RuneError)) {
			fmt.Fprintf(&b, `\x%02x`, path[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

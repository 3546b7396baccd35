package trees

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/steps"
)

// What an agent makes of files that programs outside run is set aside: taken back at the end of the step, as a step of the tool
// schema.StepHeld, which an undo takes back if a person approves it.

// maxPaths bounds the paths of a Question.
const maxPaths = 20

// Question asks whether files that were set aside are to be put back.
type Question struct {
	Agent  string
	Tree   string
	Step   int64    // that has set them aside: its undo puts them back
	Paths  []string // the first of them
	Count  int64
	Digest string // of their paths and contents
}

// holding is what a program may do to files that programs outside run.
type holding struct {
	holds  bool
	dirs   []string // that it may write
	writes []string // what it may make of such files

	masks sync.Map // by path: what is there, or in it, it can only read, and another has changed it
}

func newHolding(about *Newcomer) *holding {
	h := &holding{holds: about.Holds, dirs: about.Dirs}
	for _, path := range about.Writes {
		info, err := os.Lstat(path)
		if held.Outside(path, err == nil && info.IsDir()) == path {
			h.writes = append(h.writes, path)
		}
	}
	if !about.Holds || !about.Masked {
		return h
	}
	for _, dir := range about.Dirs {
		found, _ := held.Search(dir, nil) // what it does not find has no masks either
		for _, path := range found.Outside {
			if within(dir, path) && !slices.Contains(h.writes, path) && lone(path) {
				h.masks.Store(path, true)
			}
		}
	}
	return h
}

// lone reports whether no file at a path, or in it, has another name, by which a program could write it.
func lone(path string) bool {
	all := true
	err := filepath.WalkDir(path, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		all = all && ok && st.Nlink == 1
		return nil
	})
	return all && err == nil
}

// could reports whether a program may be the one that has changed a path, which is at or in one of those files.
func (h *holding) could(path, of string) bool {
	_, masked := h.masks.Load(of)
	in := func(dir string) bool { return within(dir, path) }
	return h.holds && !masked && slices.ContainsFunc(h.dirs, in) && !slices.ContainsFunc(h.writes, in)
}

// Away says that a name was taken away where a program can only read what it leads to: what is there next may be the program's. "" says
// that it may have been any.
func (t *Trees) Away(pid int64, name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	p := t.programs[pid]
	t.mu.Unlock()
	if p == nil {
		return
	}
	h := p.holding.Load()
	if h == nil {
		return
	}
	h.masks.Range(func(path, _ any) bool {
		if slices.ContainsFunc(strings.Split(path.(string), "/"), func(part string) bool { return strings.EqualFold(part, name) }) {
			h.masks.Delete(path)
		}
		return true
	})
}

// outside reports whether a change is to be set aside.
func (one *tree) outside(c *steps.Change) bool {
	if !c.After.Exists() || one.copyAt(one.root) != nil { // programs outside do not meet a copy that is reviewed
		return false
	}
	of := held.Outside(c.Path, c.After.IsDir())
	if of == "" {
		return false
	}
	path, of := filepath.Join(one.root, c.Path), filepath.Join(one.root, of)
	could := func(p *program) bool {
		h := p.holding.Load()
		return h != nil && h.could(path, of)
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(one.live)), could) || slices.ContainsFunc(slices.Collect(maps.Values(one.affected(one))), could)
}

// holds reports whether something of a step is to be set aside.
func (one *tree) holds(made *steps.Step) bool {
	return slices.ContainsFunc(made.Changes, func(c steps.Change) bool { return one.outside(&c) })
}

// setAside takes back what cuts of a step did to files that programs outside run, and has a question asked. The programs are frozen, if
// there are any.
func (one *tree) setAside(of *author, cuts []*steps.Step, now time.Time) {
	cuts, one.held = append(one.held, cuts...), nil
	var seqs []uint64
	for _, cut := range cuts {
		if one.holds(cut) {
			seqs = append(seqs, cut.Seq)
		}
	}
	if seqs == nil {
		return
	}
	about := one.about(of.about.Agent, of.about.PID, schema.StepOfUndo, now)
	about.Began, about.Tool, about.Step = now.UnixMilli(), schema.StepHeld, one.next(about.Agent)
	label, err := labelled(about)
	var done *steps.Undone
	if err == nil {
		label.Except = one.copied
		done, err = one.store.Undo(context.Background(), seqs, steps.UndoOptions{
			Label: label, Before: steps.Label{Kind: steps.Outside, Except: one.copied}, Partial: true, Only: one.outside,
		})
	}
	if err != nil {
		one.held = cuts // the next cut tries again
		one.log.Error("files that programs outside run are not set aside yet", "tree", one.root, "agent", about.Agent, "error", err)
	}
	if done == nil || done.Step == nil {
		one.unused(about.Agent, about.Step)
		return
	}
	about.Ended = now.UnixMilli()
	a := aside{one, about, done.Step}
	if c := of.call; c != nil { // it is recorded after the call
		c.mu.Lock()
		c.asides = append(c.asides, a)
		c.mu.Unlock()
		return
	}
	a.record()
}

// aside is a step that has set files aside.
type aside struct {
	tree  *tree
	about *schema.StepState
	made  *steps.Step
}

// record notes the step, and the question about it, to be recorded.
func (a *aside) record() {
	one := a.tree
	one.finished(a.about, []*steps.Step{a.made})
	q := a.question()
	if q.Count == 0 { // a directory
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.unasked = append(one.unasked, q)
}

// question returns the question about the files.
func (a *aside) question() Question {
	one, about := a.tree, a.about
	q := Question{Agent: about.Agent, Tree: one.root, Step: about.Step}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", one.root)
	for _, c := range a.made.Changes {
		if !c.Before.Exists() || c.Before.IsDir() {
			continue
		}
		fmt.Fprintf(sum, "%q %v\n", c.Path, c.Before)
		if q.Count++; len(q.Paths) < maxPaths {
			q.Paths = append(q.Paths, clip.Text(text(c.Path), longestPath/maxPaths))
		}
	}
	q.Digest = hex.EncodeToString(sum.Sum(nil))
	return q
}

// tell adds the files to what the caller is told.
func (a *aside) tell(out *schema.StepItems) {
	const most, longest = 8, 512
	q := a.question()
	out.Count += q.Count
	for _, path := range q.Paths[:max(0, min(len(q.Paths), most-len(out.Items)))] {
		out.Items = append(out.Items, clip.Text(text(filepath.Join(q.Tree, path)), longest))
	}
}

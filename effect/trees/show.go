package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/steps"
)

var _ step.Shell = (*Trees)(nil)

// Trees implements step.Shell.
func (t *Trees) Trees() (list []schema.StepTree) {
	t.mu.Lock()
	all := t.all()
	agents, refused := make(map[*tree][]string), make(map[string]*schema.StepTree)
	for _, p := range t.programs {
		for dir, why := range p.refused {
			if refused[dir] == nil {
				refused[dir] = &schema.StepTree{Path: dir, Why: &why}
			}
			refused[dir].Agents = append(refused[dir].Agents, p.agent)
		}
		for _, one := range p.trees {
			agents[one] = append(agents[one], p.agent)
		}
	}
	t.mu.Unlock()
	for _, one := range all {
		shown := schema.StepTree{Path: one.root, Agents: agents[one]}
		slices.Sort(shown.Agents)
		why := one.uncovered()
		if why == "" {
			status, err := one.status()
			if errors.Is(err, errClosed) {
				continue
			}
			shown.Files, shown.Bytes = status.Files, status.Bytes
			if err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			shown.Why = &why
		}
		list = append(list, shown)
	}
	for _, dir := range slices.Sorted(maps.Keys(refused)) {
		slices.Sort(refused[dir].Agents)
		list = append(list, *refused[dir])
	}
	return list
}

// status returns the size of a tree, and what is wrong with it.
func (one *tree) status() (status steps.Status, err error) {
	if err := one.take(context.Background()); err != nil {
		return status, err
	}
	defer one.release()
	status, err = one.store.Status(context.Background())
	return status, errors.Join(err, one.trouble, status.Unwatched, status.Partial, one.keyless)
}

// using calls do with the store of a tree and what steps did there. If the tree, or a step, is not kept any more, it does nothing and
// returns false.
func (t *Trees) using(ctx context.Context, root string, records []*step.Record, do func(*steps.Store, []*steps.Step) error) (bool, error) {
	one, err := t.holding(ctx, root)
	if errors.Is(err, fault.StepsNotFound) || errors.Is(err, fault.StepsNotKept) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer one.release()
	if one.root != root {
		return false, nil
	}
	seqs, err := one.cutsOf(ctx, records)
	if errors.Is(err, steps.ErrNoStep) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	list := make([]*steps.Step, len(seqs))
	for i, seq := range seqs {
		if list[i], err = one.store.Step(ctx, seq); err != nil {
			return false, err
		}
	}
	return true, do(one.store, list)
}

// ends returns the first and the last record of a step in the store.
func ends(r *step.Record) (first, last uint64) {
	return uint64(r.Cuts[0]), uint64(r.Cuts[len(r.Cuts)-1])
}

// cutsOf returns the records of steps in the store, in their order. It fails with steps.ErrNoStep if one is not kept any more.
func (one *tree) cutsOf(ctx context.Context, records []*step.Record) (seqs []uint64, _ error) {
	for _, r := range records {
		if len(r.Cuts) == 0 {
			continue
		}
		first, last := ends(r)
		list, err := one.store.Steps(ctx, first, int(last-first)+1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 || list[0].Seq != first { // the oldest go first
			return nil, fmt.Errorf("%w: %d", steps.ErrNoStep, first)
		}
		for _, s := range list {
			if s.Seq == first || s.Seq <= last && (s.Kind == steps.Call || s.Kind == steps.Background) {
				seqs = append(seqs, s.Seq)
			}
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}

// Whole implements step.Shell.
func (t *Trees) Whole(ctx context.Context, records []schema.StepState) error {
	for i := range records {
		r := &records[i]
		if len(r.Cuts) == 0 {
			continue
		}
		_, err := t.using(ctx, r.Tree, []*step.Record{{StepState: *r}}, func(_ *steps.Store, cuts []*steps.Step) error {
			r.Files = filesOf(cuts)
			for _, cut := range cuts {
				about, err := noted(cut)
				if err != nil {
					return err
				}
				if about.Agent == r.Agent && about.Step == r.Step {
					r.Programs.Items, r.Connections.Items = about.Programs.Items, about.Connections.Items
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Changed implements step.Shell.
func (t *Trees) Changed(ctx context.Context, records []*step.Record, path string, most int) (list []*step.Record, _ error) {
	for _, r := range slices.Backward(records) {
		if !within(r.Tree, path) || len(r.Cuts) == 0 {
			continue
		}
		changed := false
		_, err := t.using(ctx, r.Tree, []*step.Record{r}, func(_ *steps.Store, cuts []*steps.Step) error {
			changed = slices.ContainsFunc(steps.Composed(cuts), func(c steps.Change) bool {
				return within(path, filepath.Join(r.Tree, c.Path))
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
		if changed {
			if list = append(list, r); len(list) == most {
				break
			}
		}
	}
	slices.Reverse(list)
	return list, nil
}

// Prompt implements step.Shell.
func (t *Trees) Prompt(digest string) (string, error) { return t.prompts.Text(digest) }

// longestDiff bounds the text of a diff, in bytes.
const longestDiff = 32 << 20

// diffs keeps the text of the last diff, which is asked for in parts.
type diffs struct {
	mu   sync.Mutex
	key  string
	text []byte
}

// Diff implements step.Shell.
func (t *Trees) Diff(ctx context.Context, do *step.Diff) (part []byte, more bool, err error) {
	key := keyOfDiff(do)
	text, ok := t.diffs.get(key)
	if do.Offset == 0 || !ok {
		if text, err = t.textOf(ctx, do); err != nil {
			return nil, false, err
		}
	}
	rest := text[min(do.Offset, int64(len(text))):]
	part, more = rest[:min(len(rest), step.DiffPart)], len(rest) > step.DiffPart
	if !more {
		key, text = "", nil
	}
	t.diffs.put(key, text)
	return part, more, nil
}

func (d *diffs) get(key string) (text []byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text, d.key == key
}

func (d *diffs) put(key string, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.key, d.text = key, text
}

func keyOfDiff(do *step.Diff) string {
	var b strings.Builder
	for _, r := range do.Records {
		fmt.Fprintf(&b, "%d ", r.Number)
	}
	return b.String() + do.Review + "\x00" + do.Path
}

// textOf returns the text of a diff. Several trees have a line with their paths before each.
func (t *Trees) textOf(ctx context.Context, do *step.Diff) ([]byte, error) {
	if do.Review != "" {
		return t.reviewText(ctx, do)
	}
	roots := make(map[string][]*step.Record)
	var order []string
	pathIn := func(root string) string { // what is shown of a tree
		if copied := t.copyAt(root); copied != nil && do.Path != "" {
			return copied.inside(do.Path)
		}
		return do.Path
	}
	for _, r := range do.Records {
		if do.Path != "" && !within(r.Tree, pathIn(r.Tree)) {
			continue
		}
		if roots[r.Tree] == nil {
			order = append(order, r.Tree)
		}
		roots[r.Tree] = append(roots[r.Tree], r)
	}
	if order == nil {
		return nil, fault.StepsNotFound.New("the steps changed nothing in a directory that holds %s", do.Path)
	}
	gone := func(root string) bool { return within(t.copies, root) && t.copyAt(root) == nil }
	if order = slices.DeleteFunc(order, gone); len(order) == 0 { // what was applied from a copy is a step of another tree
		return nil, fault.StepsMissing.New("the steps were made in a copy of a directory that was applied or discarded: they are not kept")
	}
	var out bytes.Buffer
	limited := &limit{&out, longestDiff}
	for _, root := range order {
		if len(order) > 1 {
			fmt.Fprintf(limited, "# %s\n", text(root))
		}
		path := pathIn(root)
		kept, err := t.using(ctx, root, roots[root], func(store *steps.Store, cuts []*steps.Step) error {
			changes := steps.Composed(cuts)
			if path != "" && path != root {
				changes = slices.DeleteFunc(changes, func(c steps.Change) bool { return !within(path, filepath.Join(root, c.Path)) })
				return store.Diff(ctx, limited, changes)
			}
			return withoutGit(ctx, store, limited, changes)
		})
		switch {
		case err != nil:
			return nil, tooLong(err)
		case !kept:
			return nil, fault.StepsMissing.New("what the steps changed in %s is not kept any more", root)
		}
	}
	return out.Bytes(), nil
}

// withoutGit writes a diff of changes but those in repositories, which it counts.
func withoutGit(ctx context.Context, store *steps.Store, out io.Writer, changes []steps.Change) error {
	all := len(changes)
	changes = slices.DeleteFunc(changes, func(c steps.Change) bool { return inGit(c.Path) })
	if git := all - len(changes); git > 0 {
		if _, err := fmt.Fprintf(out, "# %d files in .git, which a path in it shows\n", git); err != nil {
			return err
		}
	}
	return store.Diff(ctx, out, changes)
}

func tooLong(err error) error {
	if errors.Is(err, errTooLong) {
		return fault.WireAnswerTooLong.New("the diff is longer than %d MiB", longestDiff>>20).WithFix("ask for fewer steps, or name a path")
	}
	return err
}

// inGit reports whether a path is a repository, or is in one.
func inGit(path string) bool { return strings.Contains("/"+path+"/", "/.git/") }

// limit is a writer that takes so many bytes.
type limit struct {
	out  *bytes.Buffer
	left int
}

var errTooLong = errors.New("it is too long")

func (l *limit) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errTooLong
	}
	return l.out.Write(p)
}

package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/steps"
)

// Redact is the runner of Step.Redact.
func (t *Trees) Redact(ctx context.Context, _ *kernel.Job, do *schema.StepRedactInput) (out schema.StepRedactOutput, _ error) {
	if err := t.Settle(ctx, true); err != nil {
		return out, err
	}
	out.Agent, out.Step = do.Agent, do.Step
	list := step.Chosen(t.view().Of(do.Agent), &do.Step, nil)
	if len(list) == 0 {
		return out, fault.StepsNotFound.New("%q has no step %d", do.Agent, do.Step).WithFix(`"pwos steps" lists them`)
	}
	var r *step.Record
	var path string
	for _, one := range list {
		at := do.Path
		if copied := t.copyAt(one.Tree); copied != nil {
			at = copied.inside(at)
		}
		if at != one.Tree && within(one.Tree, at) && len(one.Cuts) > 0 && (r == nil || len(one.Tree) > len(r.Tree)) {
			r, path = one, at[len(one.Tree)+1:]
		}
	}
	if r == nil {
		return out, fault.StepsNotFound.New("%s:%d changed nothing in a directory that holds %s", do.Agent, do.Step, do.Path)
	}
	out.Tree = r.Tree
	first, last := ends(r)
	found, err := t.redactStore(ctx, t.storeOf(r.Tree), r.Tree, steps.Redaction{Path: path, From: first, To: last})
	if err != nil {
		return out, fmt.Errorf("redact %s: %w", do.Path, err)
	}
	if len(found.Paths) == 0 {
		return out, fault.StepsNotFound.New("%s:%d did not change %s, or what it changed is not kept any more", do.Agent, do.Step, do.Path)
	}
	out.Contents = int64(found.Contents)
	size := 0
	for _, path := range found.Paths {
		if size += len(path); size > recordSize/2 || len(out.Paths) == schema.MaxStepItems {
			break
		}
		out.Paths = append(out.Paths, clip.Text(text(path), longestPath))
	}
	return out, nil
}

// RedactValue removes a value that was redacted in the record from all stores: where it is the whole content of a file, and in what notes say of
// programs and connections.
func (t *Trees) RedactValue(ctx context.Context, value []byte) (removed int, failed error) {
	return eachStore(ctx, t.dir, t.key, value, func(dir string, r steps.Redaction) (steps.Redacted, error) {
		root, err := os.ReadFile(filepath.Join(dir, rootName))
		if err != nil {
			return steps.Redacted{}, err
		}
		return t.redactStore(ctx, dir, string(root), r)
	})
}

// RedactStores is Trees.RedactValue while no kernel runs.
func RedactStores(ctx context.Context, dir string, value []byte) (removed int, err error) {
	key, err := Key(dir)
	if err != nil {
		return 0, err
	}
	return eachStore(ctx, dir, key, value, func(dir string, r steps.Redaction) (steps.Redacted, error) {
		return steps.Redact(ctx, dir, key, r)
	})
}

func eachStore(ctx context.Context, dir string, key, value []byte, redact func(dir string, r steps.Redaction) (steps.Redacted, error)) (removed int, failed error) {
	names, err := storesIn(dir)
	if err != nil {
		return 0, err
	}
	r := steps.Redaction{Value: value, Note: func(note []byte) ([]byte, error) { return noteWithout(note, value) }}
	for _, name := range names {
		at := filepath.Join(dir, name)
		holds, err := steps.Holds(ctx, at, key, r) // most do not: these need not be opened
		if err == nil && holds {
			var found steps.Redacted
			found, err = redact(at, r)
			removed += found.Contents + found.Notes
		}
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// redactStore redacts the store of a tree, which is opened if it can be read. If it cannot, nobody has its store open.
func (t *Trees) redactStore(ctx context.Context, dir, root string, r steps.Redaction) (steps.Redacted, error) {
	defer t.diffs.put("", nil) // the text of the last one may have it
	if !t.Off {
		one, err := t.turnOf(ctx, root)
		if err == nil {
			defer func() { _ = t.record() }() // it logs what it cannot record, and the next one tries again
			defer one.release()
			one.cut(time.Now(), nil) // what is found to have changed must be recorded before
			return one.store.Redact(ctx, r)
		}
		if !errors.Is(err, fault.StepsNotKept) {
			return steps.Redacted{}, err
		}
	}
	t.mu.Lock() // it is not opened meanwhile
	defer t.mu.Unlock()
	return steps.Redact(ctx, dir, t.key, r)
}

// noteWithout returns the note of a step without a value in what it says of programs and connections.
func noteWithout(note, value []byte) ([]byte, error) {
	if len(value) == 0 || !mentions(note, value) {
		return note, nil
	}
	about, err := noted(&steps.Step{Label: steps.Label{Note: note}})
	if err != nil {
		return nil, err
	}
	changed := false
	for _, items := range []*schema.StepItems{&about.Programs, &about.Connections} {
		for i, item := range items.Items {
			items.Items[i] = strings.ReplaceAll(item, string(value), "[redacted]")
			changed = changed || items.Items[i] != item
		}
	}
	if !changed {
		return note, nil
	}
	return schema.Marshal(about)
}

// mentions reports whether a note may have a value.
func mentions(note, value []byte) bool {
	in := schema.AppendString(nil, string(value))
	return len(note) > 0 && bytes.Contains(note, in[1:len(in)-1])
}

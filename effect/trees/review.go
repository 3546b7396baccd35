package trees

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/steps"
)

// Names of files in the directory of a review.
const (
	aboutName = "about" // what it is; without it, the copy is not whole
	copyName  = "tree"  // the copy
)

// review is a copy of a tree, on which an agent works in its place. The copy is a tree too. A review outlives programs and kernels: it is
// there until it is applied or discarded.
type review struct {
	Agent   string `json:"agent"`
	Project string `json:"project"` // the tree that it is a copy of
	Began   int64  `json:"began"`
	dir     string
}

// copy returns the path of the copy.
func (r *review) copy() string { return filepath.Join(r.dir, copyName) }

// inside returns where a path of the project is in the copy.
func (r *review) inside(path string) string {
	rel, err := filepath.Rel(r.Project, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(r.copy(), rel)
}

var reviewType = sync.OnceValue(schema.TypeOf[review])

// loadReviews finds the reviews of kernels before this one, and removes copies that are not whole.
func (t *Trees) loadReviews() error {
	entries, err := os.ReadDir(t.copies)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for copies of directories: %w", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(t.copies, entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, aboutName))
		if errors.Is(err, fs.ErrNotExist) {
			err = rmtree.Dir(dir)
		} else if err == nil {
			var about any
			if about, err = decoded(text); err == nil {
				r := about.(*review)
				r.dir = dir
				t.reviews[r.Agent] = r
			}
		}
		if err != nil {
			t.log.Warn("a copy of a directory cannot be used, and is left as it is", "copy", dir, "error", err)
		}
	}
	return nil
}

// decoded reads the file aboutName.
func decoded(text []byte) (any, error) {
	about, bad := reviewType().Decode(text)
	if bad != nil {
		return nil, bad
	}
	return about, nil
}

// storeOf returns the directory of a tree's store.
func (t *Trees) storeOf(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(t.dir, hex.EncodeToString(sum[:8]))
}

// reviewOf returns the review of an agent, or nil.
func (t *Trees) reviewOf(agent string) *review {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reviews[agent]
}

// copyAt returns the review whose copy holds a path, or nil.
func (t *Trees) copyAt(path string) *review {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.reviews {
		if within(r.copy(), path) {
			return r
		}
	}
	return nil
}

// Reviews implements step.Shell.
func (t *Trees) Reviews() []schema.StepReview {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]schema.StepReview, 0, len(t.reviews))
	for _, r := range t.reviews {
		list = append(list, schema.StepReview{Agent: r.Agent, Tree: r.Project, Copy: r.copy(), Began: r.Began, Runs: t.runsIn(r)})
	}
	slices.SortFunc(list, func(a, b schema.StepReview) int { return strings.Compare(a.Agent, b.Agent) })
	return list
}

// runsIn reports whether a program works in a copy. mu is locked.
func (t *Trees) runsIn(r *review) bool {
	for _, p := range t.programs {
		if !p.gone.Load() && slices.ContainsFunc(p.trees, func(one *tree) bool { return one.root == r.copy() }) {
			return true
		}
	}
	return false
}

// Review returns the tree in whose place an agent works on a copy, and the copy, which it makes if there is none: of the tree of a
// directory, "" if there must be one.
func (t *Trees) Review(agent, dir, home string) (project, copied string, err error) {
	t.making.Lock()
	defer t.making.Unlock()
	r, root, err := t.reviewable(agent, dir, home)
	if err != nil {
		return "", "", err
	}
	if r != nil {
		return r.Project, r.copy(), nil
	}
	r = &review{Agent: agent, Project: root, Began: time.Now().UnixMilli()}
	sum := sha256.Sum256([]byte(agent))
	r.dir = filepath.Join(t.copies, hex.EncodeToString(sum[:8]))
	if err := t.make(r); err != nil {
		return "", "", errors.Join(fmt.Errorf("no copy is made of %s to review: %w", root, err), t.clear(r))
	}
	t.mu.Lock()
	t.reviews[agent] = r
	t.mu.Unlock()
	return r.Project, r.copy(), nil
}

// Reviewed returns the tree that Review would, and makes nothing.
func (t *Trees) Reviewed(agent, dir, home string) (project string, err error) {
	r, root, err := t.reviewable(agent, dir, home)
	if r != nil {
		root = r.Project
	}
	return root, err
}

// reviewable returns the review of an agent, or nil and the tree that a copy can be made of.
func (t *Trees) reviewable(agent, dir, home string) (r *review, root string, err error) {
	r = t.reviewOf(agent)
	if dir != "" {
		var why string
		if root, why = chosen(dir, home); why != "" {
			return nil, "", fmt.Errorf("no copy is made of %s to review: %s", dir, why)
		}
	}
	switch {
	case r != nil && dir != "" && !within(r.Project, dir):
		return nil, "", fmt.Errorf("%q works on a copy of %s already: apply or discard that first, or give this agent another name", agent, r.Project)
	case r != nil:
		return r, "", nil
	case dir == "":
		return nil, "", fmt.Errorf("%q has no copy to work on any more: it was applied or discarded", agent)
	case t.Off:
		return nil, "", fmt.Errorf(`no copy is made of %s to review: steps are off ("[record] steps" in the configuration), and changes are found by them`, root)
	case within(root, t.dir):
		return nil, "", fmt.Errorf("no copy is made of %s to review: the kernel keeps its files in it", root)
	}
	if info, err := os.Lstat(filepath.Join(root, ".git")); err == nil && !info.IsDir() {
		return nil, "", fmt.Errorf("no copy is made of %s to review: it is a linked worktree or a submodule, whose repository is elsewhere and would be changed: work in the repository itself, or in a clone", root)
	}
	return nil, root, nil
}

// make makes the copy of a review.
func (t *Trees) make(r *review) error {
	one, err := t.turnOf(t.ending, r.Project)
	if err != nil {
		return err
	}
	one.cut(one.left, nil)
	one.note() // from when on it is not used
	err = one.trouble
	if err == nil {
		var status steps.Status
		status, err = one.store.Status(t.ending)
		err = errors.Join(err, status.Partial)
	}
	one.release()
	if err != nil {
		return err
	}
	if err := t.clear(r); err != nil { // what a kernel that was killed has left
		return err
	}
	info, err := os.Stat(r.Project)
	if err == nil {
		err = os.MkdirAll(r.dir, 0o700)
	}
	if err == nil {
		err = os.Mkdir(r.copy(), 0o700)
	}
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 { // what is made in it gets the same owner
		if err := os.Lchown(r.copy(), int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if err := os.Chmod(r.copy(), info.Mode().Perm()); err != nil {
		return err
	}
	if err := one.store.Copy(t.ending, r.copy(), t.storeOf(r.copy())); err != nil {
		return err
	}
	text, err := schema.Marshal(r)
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(r.dir, aboutName), text, 0o600)
}

// clear removes the copy of a review and its store.
func (t *Trees) clear(r *review) error {
	if err := os.Remove(filepath.Join(r.dir, aboutName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(rmtree.Dir(r.dir), rmtree.Dir(t.storeOf(r.copy())))
}

// remove removes a review, whose copy is taken and closed then. making is locked.
func (t *Trees) remove(r *review, copied *tree) error {
	t.mu.Lock()
	delete(t.reviews, r.Agent)
	delete(t.trees, copied.root)
	t.mu.Unlock()
	copied.shut()
	if err := os.Remove(filepath.Join(r.dir, aboutName)); err != nil {
		return err
	}
	gone := r.dir + "-" + rand.Text() // the agent may begin another one at once
	if err := os.Rename(r.dir, gone); err != nil {
		return err
	}
	t.alive.Go(func() { // which may take long; the next kernel does what is left
		if err := rmtree.Dir(gone); err != nil {
			t.log.Warn("a copy of a directory is not removed", "copy", gone, "error", err)
		}
	})
	return rmtree.Dir(t.storeOf(r.copy()))
}

// origin is the store that a copy has contents from, in steps.Options; nil for a tree that is no copy.
func (one *tree) origin() func(context.Context) (*steps.Store, func(), error) {
	r := one.copyAt(one.root)
	if r == nil {
		return nil
	}
	return func(ctx context.Context) (*steps.Store, func(), error) { // the copy is taken: no tree is taken before its copies
		if of := one.original; of != nil {
			return of.store, func() {}, nil
		}
		of, err := one.turnOf(ctx, r.Project)
		switch {
		case errors.Is(err, fault.StepsNotKept): // it was moved away: what it had is missing
			one.log.Warn("what files of a copy were before is not kept", "copy", r.copy(), "tree", r.Project, "error", err)
			return nil, nil, nil
		case err != nil:
			return nil, nil, fmt.Errorf("read %s, which %s is a copy of: %w", r.Project, r.copy(), err)
		}
		return of.store, of.release, nil
	}
}

package trees

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/steps"
)

// call is a tool call that has begun.
type call struct {
	program *program
	key     step.Key
	number  atomic.Int64 // 0: it has not begun in a tree yet
	tool    string
	digest  *string
	cause   int64 // entry that began it
	prompt  *schema.StepPrompt
	began   time.Time

	mu       sync.Mutex              // for what follows: several trees may be cut at once
	over     bool                    // it begins in no tree any more
	cuts     map[*tree][]*steps.Step // while it was open
	with     []string                // what it shares them with
	programs schema.StepItems
	hosts    schema.StepItems // that it connected to

	connected schema.StepItems // where its own processes did, while it is open; guarded by that of the trees
	asides    []aside          // what was set aside of it
}

func (c *call) shares(other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.with, other) {
		c.with = append(c.with, other)
	}
}

// state returns what is known of the step in a tree, before it ends.
func (c *call) state(in *tree) *schema.StepState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &schema.StepState{
		Agent: c.program.agent, Step: c.number.Load(), PID: c.program.pid, Tree: in.root, Kind: schema.StepCall, Tool: c.tool, InputDigest: c.digest,
		Cause: c.cause, Prompt: c.prompt, Began: c.began.UnixMilli(), Programs: c.programs, Connections: c.hosts,
	}
}

// aside returns what was set aside of it.
func (c *call) aside() []aside {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asides)
}

// cutsIn returns the cuts of a tree while it was open.
func (c *call) cutsIn(one *tree) []*steps.Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts[one]
}

// maxOpen bounds the tool calls of a program that are open at once.
const maxOpen = 64

// readTime is how long a tool call waits for the first reading of the trees.
const readTime = 5 * time.Second

// longestTool bounds a tool in a record, in bytes.
const longestTool = 256

// of returns the program of a process, and the name of the agent.
func (t *Trees) of(pid int64) (p *program, agent string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p = t.programs[pid]; p != nil {
		return p, p.agent
	}
	if d := t.processes.Process(pid); d != nil {
		agent = d.AgentID
	}
	return nil, agent
}

// admit notes a call as open, or returns why it cannot be. One of the same name was open if its end was lost.
func (t *Trees) admit(c *call) (before *call, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := c.program
	before = p.calls[c.key]
	switch {
	case p.gone.Load():
		return nil, "the program has ended"
	case before == nil && len(p.calls) >= maxOpen:
		return nil, fmt.Sprintf("%d tool calls are open already", maxOpen)
	}
	p.calls[c.key] = c
	return before, ""
}

// Begin is the runner of Step.Begin.
func (t *Trees) Begin(ctx context.Context, job *kernel.Job, in *schema.StepBeginInput) (out schema.StepBeginOutput, _ error) {
	p, agent := t.of(job.PID)
	if out.Agent = agent; p == nil || len(p.trees) == 0 {
		why := "no directory of the caller is kept"
		out.Uncovered = &why
		return out, nil
	}
	now := time.Now()
	c := &call{
		program: p, key: step.KeyOf(in.Host, in.Session, in.Tool, in.Use), tool: clip.Text(in.Host+"/"+in.Tool, longestTool), digest: in.InputDigest,
		cause: int64(job.Seq), prompt: t.prompts.Latest(job.PID, in.Host, in.Session), began: now, cuts: make(map[*tree][]*steps.Step),
	}
	before, why := t.admit(c)
	if why != "" {
		out.Uncovered = &why
		return out, nil
	}
	if before != nil {
		t.over(before, resultUnknown)
	}
	for _, one := range p.trees {
		limited, cancel := context.WithTimeout(ctx, readTime)
		err := one.take(limited)
		cancel()
		if err == nil {
			err = one.start(c)
			one.release()
		}
		if ctx.Err() != nil { // nobody waits for it any more
			t.drop(c)
			t.over(c, resultUnknown)
			return out, ctx.Err()
		}
		if err != nil {
			why := one.root + ": " + cmp.Or(one.uncovered(), err.Error())
			out.Uncovered = &why
		}
	}
	p.hooked.CompareAndSwap(nil, &now)             // only now: what was before is still the program's own activity
	if out.Step = c.number.Load(); out.Step == 0 { // none of its trees can be kept
		t.drop(c)
		return out, nil
	}
	return out, t.record()
}

// start begins a call, after what was before it. The tree is in use.
func (one *tree) start(c *call) error {
	one.enterNow(c.program)
	one.cut(time.Now(), nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errOver
	}
	if c.number.Load() == 0 {
		c.number.Store(one.next(c.program.agent))
		c.began = time.Now()
	}
	one.open[c] = true
	return nil
}

var errOver = errors.New("the call is over already")

// drop takes a call out of the open ones of its program.
func (t *Trees) drop(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.program.calls[c.key] == c {
		delete(c.program.calls, c.key)
	}
}

// End is the runner of Step.End.
func (t *Trees) End(_ context.Context, job *kernel.Job, in *schema.StepEndInput) (out schema.StepEndOutput, _ error) {
	p, agent := t.of(job.PID)
	if out.Agent = agent; p == nil {
		return out, nil
	}
	result := resultOK
	if in.Failed != nil && *in.Failed {
		result = resultFailed
	}
	if in.Tool == step.Every {
		result = resultUnknown
	}
	for _, c := range t.closing(p, in) {
		out.Step = c.number.Load()
		out.Files += t.over(c, result)
		for _, a := range c.aside() {
			a.tell(&out.Aside)
		}
	}
	return out, t.record()
}

// closing takes the calls that an end is about out of the open ones of their program, and returns them in their order.
func (t *Trees) closing(p *program, in *schema.StepEndInput) (list []*call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, c := range p.calls {
		if key.EndedBy(in) {
			list = append(list, c)
			delete(p.calls, key)
		}
	}
	slices.SortFunc(list, inOrder)
	return list
}

func inOrder(a, b *call) int { return cmp.Compare(a.number.Load(), b.number.Load()) }

// over ends a call in all its trees, and returns how many paths it changed. Each tree in which it changed something has a record of it,
// or, if there is none, the first.
func (t *Trees) over(c *call, result string) (files int64) {
	c.mu.Lock()
	again := c.over
	c.over = true
	c.mu.Unlock()
	if again {
		return 0
	}
	about := &schema.StepState{PID: c.program.pid}
	t.taken(about, c)
	c.mu.Lock()
	c.programs, c.hosts = about.Programs, about.Connections
	c.mu.Unlock()
	var first *tree
	recorded := false
	for _, one := range c.program.trees {
		if !one.takeRead() {
			continue
		}
		if one.open[c] {
			one.cut(time.Now(), nil)
			delete(one.open, c)
			if first == nil {
				first = one
			}
			if cuts := c.cutsIn(one); cuts != nil {
				files += one.finish(c, cuts, result)
				recorded = true
			}
		}
		one.release()
	}
	if first != nil && !recorded {
		first.finish(c, nil, result)
	}
	for _, a := range c.aside() {
		a.record()
	}
	return files
}

// finish records a call that is over in a tree, and returns how many paths it changed there.
func (one *tree) finish(c *call, cuts []*steps.Step, result string) (files int64) {
	about := c.state(one)
	about.Ended, about.Result = time.Now().UnixMilli(), &result
	c.mu.Lock()
	about.Shared, about.With = len(c.with) > 0 && len(cuts) > 0, slices.Clone(c.with)
	c.mu.Unlock()
	one.finished(about, cuts)
	return about.Files.Count()
}

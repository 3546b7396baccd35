package trees

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/steps"
)

// call is a tool call that has begun.
type call struct {
	program *program
	key     string
	number  int64
	tool    string
	digest  *string
	cause   int64 // entry that began it
	began   time.Time

	mu       sync.Mutex              // for what follows: several trees may be cut at once
	cuts     map[*tree][]*steps.Step // while it was open
	with     []string                // what it shares them with
	programs schema.StepItems
	hosts    schema.StepItems // that it connected to
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
		Agent: c.program.agent, Step: c.number, PID: c.program.pid, Tree: in.root, Kind: schema.StepCall, Tool: c.tool, InputDigest: c.digest,
		Cause: c.cause, Began: c.began.UnixMilli(), Programs: c.programs, Connections: c.hosts,
	}
}

// maxOpen bounds the tool calls of a program that are open at once.
const maxOpen = 64

// readTime is how long a tool call waits for the first reading of the trees.
const readTime = 5 * time.Second

// longestTool bounds a tool in a record, in bytes.
const longestTool = 256

// clip returns a text that is at most size bytes long.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size-len("…")], "") + "…"
}

// keyOf names a tool call among those of its program.
func keyOf(host, session, tool string, use *string) string {
	if use != nil {
		tool = "use " + *use
	} else {
		tool = "tool " + tool
	}
	return host + "\x00" + session + "\x00" + tool
}

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
		program: p, key: keyOf(in.Host, in.Session, in.Tool, in.Use), tool: clip(in.Host+"/"+in.Tool, longestTool), digest: in.InputDigest,
		cause: int64(job.Seq), cuts: make(map[*tree][]*steps.Step),
	}
	if before := t.closing(p, c.key); before != nil { // its end was lost
		t.over(before, resultUnknown)
	}
	t.mu.Lock()
	many := len(p.calls) >= maxOpen
	t.mu.Unlock()
	if many {
		why := fmt.Sprintf("%d tool calls are open already", maxOpen)
		out.Uncovered = &why
		return out, nil
	}
	for _, one := range p.trees {
		limited, cancel := context.WithTimeout(ctx, readTime)
		err := one.take(limited)
		cancel()
		if ctx.Err() != nil {
			t.abandon(c)
			return out, ctx.Err()
		}
		if err != nil {
			why := one.root + ": " + one.uncovered()
			out.Uncovered = &why
			continue
		}
		one.enterNow(p)
		began := time.Now()
		c.mu.Lock()
		c.began = began
		c.mu.Unlock()
		one.cut(began, nil)
		if c.number == 0 { // after what was before it
			c.number = t.next(agent)
		}
		one.open[c] = true
		one.release()
	}
	p.hooked.CompareAndSwap(nil, &now) // only now: what was before is still the program's own activity
	if c.number == 0 {                 // none of its trees can be kept
		return out, nil
	}
	out.Step = c.number
	t.mu.Lock()
	before := p.calls[c.key] // another of that name has begun meanwhile
	p.calls[c.key] = c
	t.mu.Unlock()
	if before != nil {
		t.over(before, resultUnknown)
	}
	return out, t.record()
}

// abandon takes back the begin of a call that nobody waits for any more.
func (t *Trees) abandon(c *call) {
	for _, one := range c.program.trees {
		select {
		case <-one.filled:
		default:
			continue
		}
		if one.take(context.Background()) == nil {
			if one.open[c] {
				now := time.Now()
				one.cut(now, nil)
				one.finish(c, now, resultUnknown)
			}
			one.release()
		}
	}
}

// closing takes a call out of the open ones of its program; nil if there is none.
func (t *Trees) closing(p *program, key string) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := p.calls[key]
	delete(p.calls, key)
	return c
}

// Every is the tool of a Step.End that ends all calls of a session: the host has lost sight of them.
const Every = "*"

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
	if in.Tool == Every {
		result = resultUnknown
	}
	for _, key := range t.keys(p, in) {
		if c := t.closing(p, key); c != nil {
			out.Step = c.number
			out.Files += t.over(c, result)
		}
	}
	return out, t.record()
}

// keys returns the keys of the calls that an end is about.
func (t *Trees) keys(p *program, in *schema.StepEndInput) (list []string) {
	if in.Tool != Every {
		return []string{keyOf(in.Host, in.Session, in.Tool, in.Use)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	prefix := in.Host + "\x00" + in.Session + "\x00"
	for key := range p.calls {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

// over ends a call in all its trees. It returns how many paths it changed.
func (t *Trees) over(c *call, result string) (files int64) {
	about := &schema.StepState{PID: c.program.pid}
	t.taken(about)
	c.mu.Lock()
	c.programs, c.hosts = about.Programs, about.Connections
	c.mu.Unlock()
	for _, one := range c.program.trees {
		if one.take(context.Background()) != nil {
			continue
		}
		if one.open[c] {
			now := time.Now()
			one.cut(now, nil)
			files += one.finish(c, now, result)
		}
		one.release()
	}
	return files
}

// finish ends a call in a tree, which was cut. Where it changed nothing, only the first of its trees has a record of it.
func (one *tree) finish(c *call, now time.Time, result string) (files int64) {
	delete(one.open, c)
	c.mu.Lock()
	cuts, with := c.cuts[one], slices.Clone(c.with)
	c.mu.Unlock()
	if len(cuts) == 0 && one != c.program.trees[0] {
		return 0
	}
	about := c.state(one)
	about.Ended, about.Result = now.UnixMilli(), &result
	about.Shared, about.With = len(with) > 0 && len(cuts) > 0, with
	one.finished(about, cuts)
	return about.Files.Count()
}

package execs

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

// Bounds of what is kept of tool calls.
const (
	maxOpen    = 64 // calls of an agent that are open at once; of more, the oldest are forgotten
	maxRefused = 8  // different refusals of a call; more are counted
)

// Calls has the tool calls of agents that are open, each with the execs that were refused meanwhile, and those that were approved before. Its zero value has none. It is safe
// for concurrent use.
type Calls struct {
	mu     sync.Mutex
	agents map[int64][]*call // open ones, in the order in which they began
	ended  map[int64][]ended // the last that have ended
}

type call struct {
	key      step.Key
	step     string
	message  string // the id of the message that began it
	begun    bool
	at       time.Time // when it began
	approved []approved
	Refusals
}

// ended is a step that has ended.
type ended struct {
	step     string
	message  string // as in call
	from, to time.Time
}

// accuracy is that of the start time of a process.
const accuracy = 10 * time.Millisecond

// approved is a program, with its arguments, that a call may execute once although a rule asks about it.
type approved struct {
	by   kernel.Approval
	argv []string
}

// Refusals are execs that were refused: the first different ones, and how many more there were.
type Refusals struct {
	List []schema.StepRefused
	More int64
}

func (r *Refusals) add(one *schema.StepRefused) {
	switch same := func(o schema.StepRefused) bool {
		return o.Program == one.Program && o.Error == one.Error && o.Why == one.Why
	}; {
	case slices.ContainsFunc(r.List, same):
	case len(r.List) < maxRefused:
		r.List = append(r.List, *one)
	default:
		r.More++
	}
}

// Begin notes that a call of an agent has begun, the step that it is, "" for none, and the id of the message that says so.
func (c *Calls) Begin(agent int64, key step.Key, step, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begins := &call{key: key, step: step, message: message, begun: true, at: time.Now()}
	c.drop(agent, func(one *call) bool {
		named := one.key.Host == key.Host && one.key.Call == key.Call
		if named && !one.begun && strings.HasPrefix(key.Session, one.key.Session) { // of a subagent, the session has more behind
			begins.approved = append(begins.approved, one.approved...)
			return true
		}
		return one.key == key // its end was lost
	})
	c.keep(agent, begins)
}

// Approved notes that a call of an agent, which begins next, was approved, and the programs that its command names and a rule asks about.
func (c *Calls) Approved(agent int64, key step.Key, by kernel.Approval, programs [][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(agent, func(one *call) bool { return one.key == key && !one.begun })
	will := &call{key: key}
	for _, argv := range programs {
		will.approved = append(will.approved, approved{by, argv})
	}
	c.keep(agent, will)
}

// Take returns the approval of a program of an agent, in a call that is open, and uses it up; nil: there is none.
func (c *Calls) Take(agent int64, argv []string) *kernel.Approval {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.agents[agent] {
		i := slices.IndexFunc(one.approved, func(a approved) bool { return slices.Equal(a.argv, argv) })
		if i >= 0 {
			by := one.approved[i].by
			one.approved = slices.Delete(one.approved, i, i+1)
			return &by
		}
	}
	return nil
}

// keep adds a call. mu is locked.
func (c *Calls) keep(agent int64, one *call) {
	if c.agents == nil {
		c.agents = make(map[int64][]*call)
	}
	open := c.agents[agent]
	c.agents[agent] = append(open[max(0, len(open)+1-maxOpen):], one)
}

// drop forgets the calls of an agent that a function chooses. mu is locked.
func (c *Calls) drop(agent int64, chosen func(*call) bool) {
	if open := slices.DeleteFunc(c.agents[agent], chosen); len(open) > 0 {
		c.agents[agent] = open
	} else {
		delete(c.agents, agent)
	}
}

// Step returns the last step of an agent that has begun, of those that are open; "": none is.
func (c *Calls) Step(agent int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.agents[agent]
	for i := len(open) - 1; i >= 0; i-- {
		if open[i].step != "" {
			return open[i].step
		}
	}
	return ""
}

// passed remembers a call that has ended. mu is locked.
func (c *Calls) passed(agent int64, one *call) {
	if one.step == "" {
		return
	}
	if c.ended == nil {
		c.ended = make(map[int64][]ended)
	}
	before := c.ended[agent]
	c.ended[agent] = append(before[max(0, len(before)+1-maxOpen):], ended{one.step, one.message, one.at, time.Now()})
}

// steps returns the steps of an agent that are open, as if they ended now, and the last that have ended. mu is locked.
func (c *Calls) steps(agent int64) []ended {
	all := slices.Clone(c.ended[agent])
	for _, one := range c.agents[agent] {
		if one.step != "" {
			all = append(all, ended{one.step, one.message, one.at, time.Now()})
		}
	}
	return all
}

// Message returns the id of the message that began a step of an agent; "": it is too long ago.
func (c *Calls) Message(agent int64, step string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.steps(agent) {
		if one.step == step {
			return one.message
		}
	}
	return ""
}

// StepOf returns the step in which a process of an agent, or what it descends from, was started: of the eldest that was started in one.
// "": none was, or there were several at the same time, or it is too long ago.
func (c *Calls) StepOf(agent int64, started []time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.steps(agent)
	for _, at := range started {
		in := ""
		for _, one := range all {
			if at.Before(one.from.Add(-accuracy)) || at.After(one.to) {
				continue
			}
			if in != "" {
				return ""
			}
			in = one.step
		}
		if in != "" {
			return in
		}
	}
	return ""
}

// Refused notes a refusal in each call of an agent that is open: which of them has requested the exec is not known.
func (c *Calls) Refused(agent int64, r *schema.StepRefused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.agents[agent] {
		one.add(r)
	}
}

// End returns what was refused in the calls that end, and forgets them.
func (c *Calls) End(agent int64, in *schema.StepEndInput) (refused Refusals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(agent, func(one *call) bool {
		ends := one.key.EndedBy(in)
		if ends {
			c.passed(agent, one)
			for i := range one.List {
				refused.add(&one.List[i])
			}
			refused.More += one.More
		}
		return ends
	})
	return refused
}

// Leave forgets the calls of an agent.
func (c *Calls) Leave(agent int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ended, agent)
	delete(c.agents, agent)
}

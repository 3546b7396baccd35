// Package trees keeps the steps of the directories that agents work in.
//
// A tree is such a directory, with a store of its own (package steps). It is cut whenever it can be said who made what changed since the
// last cut: when a tool call begins or ends, when a program without hooks has been active and is quiet again, when a program ends, and
// at an undo. Where several may have made it, the step says so (PROTOCOL 12, Steps).
package trees

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

// Kernel records steps.
type Kernel interface {
	// Do returns when a command is on disk.
	Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
}

// Agents is what has the programs of agents. Its methods are safe for concurrent use.
type Agents interface {
	// Busy reports whether an agent has processes that its program started after a time.
	Busy(pid int64, since time.Time) bool
	// Freeze stops all processes of an agent until the function that it returns is called.
	Freeze(pid int64) (thaw func())
	// Started returns the programs that an agent has started since it was last asked, and how many of them were refused.
	Started(pid int64) schema.StepItems
}

// Prompts is what has the prompts of users. Its methods are safe for concurrent use.
type Prompts interface {
	// Latest returns the prompt that a session of an agent works on; nil if none is known.
	Latest(pid int64, host, session string) *schema.StepPrompt
	// Text returns the text of a prompt; "" if it is not kept.
	Text(digest string) (string, error)
	// Forget removes the texts of prompts that were last submitted before a time.
	Forget(before time.Time) error
}

// Settings are what the operator sets.
type Settings struct {
	Off               bool
	MaxFiles          int64 // entries of a tree
	MaxBytes, MaxFile int64 // of a store, and of a file in it
	Keep              time.Duration
	KeepBytes         int64 // of a store
}

// Trees has the trees of a kernel.
type Trees struct {
	Settings
	dir       string
	copies    string // has the reviews
	kernel    Kernel
	agents    Agents
	processes kernel.Processes
	view      func() *step.View
	ask       func(context.Context, *Question) error
	log       *slog.Logger
	key       []byte
	keyless   error // why there is no key; nil: there is

	ending context.Context
	stop   context.CancelFunc
	alive  sync.WaitGroup

	mu         sync.Mutex // not locked while a tree is cut
	trees      map[string]*tree
	programs   map[int64]*program
	numbers    map[string]int64 // of the last step that began, by name
	unrecorded []schema.StepState
	unasked    []Question
	recording  sync.Mutex // keeps the order of what is recorded
	diffs      diffs
	prompts    Prompts
	reviews    map[string]*review
	making     sync.Mutex // while a review begins or ends, before a tree is taken
}

// Config is what New needs.
type Config struct {
	Settings
	Dir       string // of the stores; it is made
	Copies    string // has copies of trees; it is made with the first one
	Kernel    Kernel
	Agents    Agents
	Processes kernel.Processes
	View      func() *step.View
	Ask       func(context.Context, *Question) error
	Log       *slog.Logger
	Prompts   Prompts
}

// New returns trees, none of which is open. Close must follow.
func New(c Config) (*Trees, error) {
	t := &Trees{
		Settings: c.Settings, dir: c.Dir, copies: c.Copies, kernel: c.Kernel, agents: c.Agents, processes: c.Processes, view: c.View, ask: c.Ask, log: c.Log, prompts: c.Prompts,
		trees: make(map[string]*tree), programs: make(map[int64]*program), numbers: make(map[string]int64),
		reviews: make(map[string]*review),
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for steps: %w", err)
	}
	if t.key, t.keyless = t.readKey(); t.keyless != nil {
		t.log.Error("secret contents are not kept", "error", t.keyless)
	}
	if err := t.loadReviews(); err != nil {
		return nil, err
	}
	t.ending, t.stop = context.WithCancel(context.Background())
	if !t.Off {
		t.alive.Go(t.look)
		t.alive.Go(t.forget)
	}
	return t, nil
}

// Close records what happened until now, and closes all stores. Programs should have ended.
func (t *Trees) Close() {
	if t == nil {
		return
	}
	t.stop()
	t.alive.Wait()
	t.mu.Lock()
	running := make([]int64, 0, len(t.programs))
	for pid := range t.programs {
		running = append(running, pid)
	}
	t.mu.Unlock()
	for _, pid := range running {
		t.Leave(pid)
	}
	t.mu.Lock()
	all := t.all()
	clear(t.trees)
	t.mu.Unlock()
	for _, one := range all { // without mu, since an undo that is still running needs it
		one.close()
	}
}

// program is an agent's program while it runs.
type program struct {
	pid     int64
	agent   string
	trees   []*tree
	copies  []string                  // paths at which it sees private copies: what changes there is not its doing
	hooked  atomic.Pointer[time.Time] // when it has first said that a tool call begins; nil: never
	calls   map[step.Key]*call        // open ones
	refused map[string]string         // directories that are not kept, and why
	gone    atomic.Bool               // it has ended; set while mu is locked
	late    atomic.Bool               // it began before its trees were read
	holding atomic.Pointer[holding]   // what it may do to files that programs outside run
	started schema.StepItems          // what it has started since a step had that
	hosts   schema.StepItems          // where it connected to since a step had that, by time
	apart   schema.StepItems          // the same, of what no tool call does
}

// patience is how long a program waits for the first reading of its directories before it starts.
const patience = 3 * time.Second

// Newcomer is what Enter is told of a program.
type Newcomer struct {
	PID    int64
	Agent  string   // the name that its steps are counted under
	Dirs   []string // that it may write
	Copies []string // paths at which it sees private copies, which the kernel's client makes and removes
	Home   string   // of its user; "": none

	Holds  bool     // what it makes of files that programs outside run is set aside, except for those of Writes
	Writes []string // files, and directories, that it may write by name
	Masked bool     // such files that are there at its start it may only read
}

// Enter begins to keep the directories that a program may write, before it starts. It returns which are not kept, and why.
func (t *Trees) Enter(about Newcomer) (uncovered []string) {
	if t.Off {
		return nil
	}
	p := &program{pid: about.PID, agent: about.Agent, copies: about.Copies, calls: make(map[step.Key]*call), refused: make(map[string]string)}
	h := newHolding(&about)
	p.holding.Store(h)
	var roots []string
	for _, dir := range about.Dirs {
		root, why := chosen(dir, about.Home)
		if r := t.copyAt(dir); r != nil {
			root, why = r.copy(), ""
		}
		switch {
		case why != "":
			uncovered = append(uncovered, dir+": "+why)
			p.refused[dir] = why
		case !slices.Contains(roots, root):
			roots = append(roots, root)
		}
	}
	t.mu.Lock()
	if again := t.programs[p.pid]; again != nil && !again.gone.Load() { // it is started again
		p = again
		p.holding.Store(h)
	} else {
		for _, root := range roots {
			p.trees = append(p.trees, t.open(root))
		}
		t.programs[p.pid] = p // from now on none of its trees is closed
	}
	t.mu.Unlock()
	soon, cancel := context.WithTimeout(t.ending, patience)
	defer cancel()
	for _, one := range p.trees {
		select {
		case <-one.filled:
		case <-soon.Done():
			p.late.Store(true)
		}
		one.enter(p)
		if why := one.uncovered(); why != "" {
			uncovered = append(uncovered, one.root+": "+why)
		}
	}
	return uncovered
}

// chosen returns the tree of a directory: the repository that it is in, else itself; or why steps are not kept of it.
func chosen(dir, home string) (root, why string) {
	for at := dir; at != "/" && at != home; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, ""
		}
	}
	if home != "" && strings.HasPrefix(dir, home+"/") {
		return dir, ""
	}
	return "", "it is neither in the home directory nor in a repository"
}

// open returns the tree of a directory, which is opened and read beside. mu is locked.
func (t *Trees) open(root string) *tree {
	if one := t.trees[root]; one != nil && !one.again() {
		return one
	}
	one := &tree{
		Trees: t, root: root, dir: t.storeOf(root), filled: make(chan struct{}), turn: make(chan struct{}, 1),
		live: make(map[int64]*program), open: make(map[*call]bool),
	}
	t.trees[root] = one
	t.alive.Go(one.fill)
	return one
}

// Leave records the last steps of a program that has ended.
func (t *Trees) Leave(pid int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	p := t.programs[pid]
	if p == nil {
		t.mu.Unlock()
		return
	}
	p.gone.Store(true) // no call of it begins any more
	calls := slices.Collect(maps.Values(p.calls))
	clear(p.calls)
	t.mu.Unlock()
	slices.SortFunc(calls, inOrder)
	for _, c := range calls {
		t.over(c, resultUnknown)
	}
	for _, one := range p.trees {
		one.leave(p)
	}
	t.mu.Lock()
	if t.programs[pid] == p { // else it was started again meanwhile
		delete(t.programs, pid)
	}
	t.mu.Unlock()
	_ = t.record() // it logs what it cannot record, and the next one tries again
}

// Settle implements step.Shell.
func (t *Trees) Settle(ctx context.Context, now bool) error {
	if t.Off {
		return nil
	}
	t.mu.Lock()
	var ended []int64
	for pid := range t.programs {
		if p := t.processes.Process(pid); p == nil || p.ExitTick != nil {
			ended = append(ended, pid)
		}
	}
	all := t.all()
	t.mu.Unlock()
	for _, pid := range ended {
		t.Leave(pid)
	}
	for _, one := range all {
		if !now {
			break
		}
		if err := one.settle(ctx); err != nil {
			return err
		}
	}
	return t.record()
}

// all returns the open trees, by path. mu is locked.
func (t *Trees) all() []*tree {
	list := make([]*tree, 0, len(t.trees))
	for _, one := range t.trees {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *tree) int { return strings.Compare(a.root, b.root) })
	return list
}

// Connection is where a program has connected to, or wanted to.
type Connection struct {
	Where   string
	Refused bool
	Known   bool   // which of its processes has
	Step    string // the step, as NAME:12, in which this process was started; "": none
}

// Connected notes a connection for the step that made it, if that is known. If not, the step that ends next has it, and says so.
func (t *Trees) Connected(pid int64, made Connection) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.programs[pid]
	if p == nil {
		return
	}
	list, hooked := &p.hosts, p.hooked.Load() != nil
	switch {
	case made.Known && hooked:
		list = &p.apart
		for _, c := range p.calls {
			if made.Step == fmt.Sprintf("%s:%d", p.agent, c.number.Load()) {
				list = &c.connected
			}
		}
	case hooked:
		made.Where += " (by time)"
	}
	list.Count++
	if made.Refused {
		list.Refused++
		made.Where += " (refused)"
	}
	if len(list.Items) < schema.MaxStepItems && !slices.Contains(list.Items, made.Where) {
		list.Items = append(list.Items, made.Where)
	}
}

// taken adds to a step what its program has started, and connected to, since a step last had that. of is the tool call that the step is;
// nil: it is none.
func (t *Trees) taken(s *schema.StepState, of *call) {
	more := t.agents.Started(s.PID)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Programs = more
	if p := t.programs[s.PID]; p != nil {
		s.Programs = joined(p.started, more)
		s.Connections, p.started, p.hosts = p.hosts, schema.StepItems{}, schema.StepItems{}
		if of != nil {
			s.Connections = joined(of.connected, s.Connections)
		} else {
			s.Connections, p.apart = joined(p.apart, s.Connections), schema.StepItems{}
		}
	}
}

// back keeps what was taken for a step, which did not become one, for the next.
func (t *Trees) back(s *schema.StepState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.programs[s.PID]; p != nil {
		p.started, p.apart = joined(s.Programs, p.started), joined(s.Connections, p.apart)
	}
}

// joined returns two lists as one.
func joined(a, b schema.StepItems) schema.StepItems {
	items := slices.Concat(a.Items, b.Items)
	return schema.StepItems{Count: a.Count + b.Count, Refused: a.Refused + b.Refused, Items: items[:min(len(items), schema.MaxStepItems)]}
}

// next returns the number of the next step of a name.
func (t *Trees) next(agent string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := max(t.numbers[agent], t.view().Last(agent)) + 1
	t.numbers[agent] = n
	return n
}

// known moves the number of a name's last step on, if the store of a tree has a later one.
func (t *Trees) known(agent string, number int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.numbers[agent] = max(t.numbers[agent], number)
}

// How often the trees are looked at, how long nothing may happen in one until a period of activity is over, and how long a period lasts
// at most.
const (
	pace    = 250 * time.Millisecond
	quiet   = time.Second
	longest = time.Minute
	idle    = 10 * time.Minute // a tree without programs is closed, and one that could not be read is tried again
	retry   = 5 * time.Second  // a step that could not be journaled is
)

// look ends periods of activity, and closes trees that nobody works in.
func (t *Trees) look() {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	var refused time.Time
	for {
		select {
		case <-t.ending.Done():
			return
		case now := <-ticker.C:
			t.mu.Lock()
			all := t.all()
			t.mu.Unlock()
			for _, one := range all {
				one.tick(now)
			}
			if now.Sub(refused) > retry && t.record() != nil {
				refused = now
			}
		}
	}
}

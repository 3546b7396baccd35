// Package execs keeps what the programs of agents execute, until it is taken: at the end of a step, by the keeper of the steps. What was
// refused of it is kept until the tool call that it was requested in ends, whose result says so.
package execs

import (
	"cmp"
	"path/filepath"
	"sync"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/schema/secret"
)

// Bounds of what is kept.
const (
	maxArgs  = 4 << 10 // bytes of the arguments of one
	maxBytes = 1 << 20 // of all of an agent's
	// overhead is the size of a Record without its texts, and place that of an argument.
	overhead, place = 200, 24
)

// Record is an exec that an agent's process has requested. What looks secret in Args is replaced.
type Record struct {
	Time        time.Time
	PID, Parent int    // of the process that requested it, and its parent, as this process numbers them
	By          string // file of the program that requested it; "": unknown
	Path        string // absolute; "": it could not be read
	Dir         string // working directory
	Args        []string
	Cut         bool // Args lacks the end, or part of an argument
	// Tried counts earlier requests of the same process, for the same name and arguments in other directories, where nothing was: a
	// search in PATH.
	Tried   int
	Missing bool   // nothing was at Path either
	Hidden  bool   // the process could not be read: only By, PID and Parent are known
	First   bool   // it is the agent's program itself
	Refused string // why it was refused; "": it was not
}

// Name is the base name of the path.
func (r *Record) Name() string { return filepath.Base(r.Path) }

// Line is the program with its arguments, as a shell reads it.
func (r *Record) Line() string {
	return quote.Line(append([]string{cmp.Or(r.Path, r.By)}, r.Args[min(len(r.Args), 1):]...)...)
}

// size is about what a record takes in memory.
func (r *Record) size() (n int) {
	n = overhead + len(r.By) + len(r.Path) + len(r.Dir) + len(r.Refused)
	for _, arg := range r.Args {
		n += place + len(arg)
	}
	return n
}

// Keeper keeps the execs of agents. Its zero value keeps none yet. It is safe for concurrent use.
type Keeper struct {
	mu     sync.Mutex
	agents map[int64]*kept
}

// kept has the execs of one agent since the last Take.
type kept struct {
	list    []Record
	size    int
	dropped int
	// searching has for each thread that has requested what is not there the index of that record.
	searching map[int]int
}

// Add keeps an exec of an agent, and why it was refused, or "". It returns what it keeps, which is nothing of e.
func (k *Keeper) Add(agent int64, e *host.Exec, refused string) Record {
	r := recordOf(e)
	r.Refused = refused
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.agents[agent]
	if of == nil {
		if k.agents == nil {
			k.agents = make(map[int64]*kept)
		}
		of = &kept{searching: make(map[int]int)}
		k.agents[agent] = of
	}
	of.add(e.Thread, r)
	return r
}

// Take returns the execs of an agent since the last Take, in the order of the requests, and how many more there were for which there was
// no room.
func (k *Keeper) Take(agent int64) (list []Record, dropped int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.agents[agent]
	if of == nil {
		return nil, 0
	}
	delete(k.agents, agent)
	return of.list, of.dropped
}

// add keeps a record. One of a search replaces the one before, where nothing was.
func (of *kept) add(thread int, r Record) {
	if i, ok := of.searching[thread]; ok {
		if before := &of.list[i]; before.continues(&r) {
			r.Tried = before.Tried + 1
			of.size += r.size() - before.size()
			*before = r
			if !r.Missing {
				delete(of.searching, thread)
			}
			return
		}
		delete(of.searching, thread)
	}
	if of.size+r.size() > maxBytes {
		of.dropped++
		return
	}
	of.list = append(of.list, r)
	of.size += r.size()
	if r.Missing {
		of.searching[thread] = len(of.list) - 1
	}
}

// continues reports whether r goes on with the search that before is a part of.
func (before *Record) continues(r *Record) bool {
	if before.PID != r.PID || before.Name() != r.Name() || before.Dir != r.Dir || len(before.Args) != len(r.Args) {
		return false
	}
	for i, arg := range before.Args {
		if arg != r.Args[i] {
			return false
		}
	}
	return true
}

// recordOf returns what is kept of an exec.
func recordOf(e *host.Exec) Record {
	r := Record{
		Time: e.Time, PID: e.PID, Parent: e.Parent, By: e.Program, Path: e.Path, Dir: e.Dir, Cut: e.Cut, Missing: e.Missing, Hidden: e.Hidden, First: e.First,
	}
	var cut bool
	r.Args, cut = secret.Arguments(e.Args, maxArgs)
	r.Cut = r.Cut || cut
	return r
}

package process

import (
	"math"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// Remembered is how many ended processes of an origin keep their descriptor, the latest to end. A kernel that spawns without
// end must not grow without end; at some 500 bytes each these take 5 MB. Of those before, the journal tells; here it is known
// only that they were and have ended. Each origin has its own: what is forgotten would tell how many of another have ended.
const Remembered = 10_000

// table holds the processes. Descriptors are immutable: a change puts another in place, so that readers need no lock.
type table struct {
	next      int64 // PID of the next process; PIDs are never used again
	processes *btree.Map[int64, *schema.Descriptor]
	children  *btree.BTreeG[edge] // of living processes
	ended     map[string][]int64  // remembered, by origin, in the order in which they ended
	programs  *btree.Map[int64, *program]
	names     map[sibling][]int64 // the living processes that have a name: one, but where an older kernel let several
}

// sibling is what tells a living process from the others of its parent.
type sibling struct {
	parent       int64
	origin, name string
}

func siblingOf(p *schema.Descriptor) sibling { return sibling{p.ParentPID, p.Origin, p.AgentID} }

// edge leads from a living parent to a living child. In an ordered tree children of one parent lie side by side, and
// taking one out is quick however many there are.
type edge struct{ parent, child int64 }

func newTable() *table {
	less := func(a, b edge) bool {
		return a.parent < b.parent || (a.parent == b.parent && a.child < b.child)
	}
	return &table{
		next:      1,
		processes: btree.NewMap[int64, *schema.Descriptor](0),
		children:  btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}),
		programs:  btree.NewMap[int64, *program](0),
		ended:     make(map[string][]int64),
		names:     make(map[sibling][]int64),
	}
}

// Process implements kernel.Processes for the domain itself.
func (t *table) Process(pid int64) *schema.Descriptor {
	if p, ok := t.processes.Get(pid); ok {
		return p
	}
	if pid < 1 || pid >= t.next {
		return nil
	}
	return forgotten(pid)
}

// forgotten is the descriptor of a process that is no longer remembered. There was one: it is nothing that a grant could
// be made to, and asking for it is no mistake.
func forgotten(pid int64) *schema.Descriptor {
	return &schema.Descriptor{PID: pid, State: terminated, ResourceQuota: map[string]float64{}}
}

func (t *table) known(pid int64) bool {
	_, ok := t.processes.Get(pid)
	return ok
}

func (t *table) alive(pid int64) bool {
	p, ok := t.processes.Get(pid)
	return ok && p.State != terminated
}

// add adds a new process, which takes the next PID.
func (t *table) add(p *schema.Descriptor) {
	t.next = p.PID + 1
	t.put(p)
}

// put adds a process that the table does not have yet.
func (t *table) put(p *schema.Descriptor) {
	t.processes.Set(p.PID, p)
	if p.State != terminated {
		t.children.Set(edge{p.ParentPID, p.PID})
		t.names[siblingOf(p)] = append(t.names[siblingOf(p)], p.PID)
	}
}

// end marks a living process as ended, and returns the PID of the one that is forgotten for it, 0 where none is.
func (t *table) end(pid, tick int64) int64 {
	p, _ := t.processes.Get(pid)
	last := *p
	last.State, last.ExitTick, last.BlockedUntilTick = terminated, &tick, nil
	t.processes.Set(pid, &last)
	t.children.Delete(edge{p.ParentPID, pid})
	if name := siblingOf(p); len(t.names[name]) > 1 {
		t.names[name] = slices.DeleteFunc(t.names[name], func(one int64) bool { return one == pid })
	} else {
		delete(t.names, name)
	}
	t.programs.Delete(pid)
	ended := append(t.ended[p.Origin], pid)
	oldest := int64(0)
	if len(ended) > Remembered {
		oldest, ended = ended[0], ended[1:]
		t.processes.Delete(oldest)
	}
	t.ended[p.Origin] = ended
	return oldest
}

// endedWith returns a remembered process that has ended, and the descendants that ended with it. They stand before it in the
// order of ends, side by side, children before their parents.
func (t *table) endedWith(root int64) []int64 {
	first, ok := t.processes.Get(root)
	if !ok {
		return nil
	}
	ended := t.ended[first.Origin] // which a process shares with its parent
	at := slices.Index(ended, root)
	if at < 0 {
		return nil
	}
	list, found := []int64{root}, map[int64]bool{root: true}
	for _, pid := range slices.Backward(ended[:at]) {
		if p, _ := t.processes.Get(pid); !found[p.ParentPID] {
			break
		}
		list, found[pid] = append(list, pid), true
	}
	return list
}

// subtree returns a living process and its living descendants, children before their parents; nothing where it is not
// alive. It is as deep as agents make it, so it is no recursion.
func (t *table) subtree(root int64) []int64 {
	if !t.alive(root) {
		return nil
	}
	found := []int64{root}
	for i := 0; i < len(found); i++ { // by generations
		t.children.Ascend(edge{found[i], math.MinInt64}, func(e edge) bool {
			if e.parent != found[i] {
				return false
			}
			found = append(found, e.child)
			return true
		})
	}
	slices.Reverse(found)
	return found
}

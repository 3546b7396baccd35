package process

import (
	"math"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// Remembered is how many ended processes of an origin keep their descriptor, the latest to end. Without a bound a
// kernel that spawns would grow forever; at some 500 bytes each these take 5 MB. Of older ones only the PID and that
// they ended is kept; the journal has the rest. Each origin has its own bound: a common one would reveal how many
// processes of another origin have ended.
const Remembered = 10_000

// table holds the processes. Descriptors are immutable and replaced on change, so that readers need no lock.
type table struct {
	next      int64 // PID of the next process; PIDs are never reused
	processes *btree.Map[int64, *schema.Descriptor]
	children  *btree.BTreeG[edge] // of living processes
	ended     map[string][]int64  // remembered, by origin, in the order of their ends
	programs  *btree.Map[int64, *program]
	names     map[sibling][]int64 // living processes by name: one, unless an older kernel allowed several
}

// sibling identifies a living process among its parent's children.
type sibling struct {
	parent       int64
	origin, name string
}

func siblingOf(p *schema.Descriptor) sibling { return sibling{p.ParentPID, p.Origin, p.AgentID} }

// edge connects a living parent and a living child. In an ordered tree the children of one parent are adjacent, and
// removing one is quick however many there are.
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

// forgotten is the descriptor of a process that is no longer remembered. It existed: it cannot be granted anything,
// and asking for it is no error.
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

// add adds a new process with the next PID.
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

// end marks a living process as ended, and returns the PID that is forgotten in turn, 0 if none is.
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

// endedWith returns a remembered ended process and the descendants that ended with it. They precede it in the order
// of ends, adjacent, children before their parents.
func (t *table) endedWith(root int64) []int64 {
	first, ok := t.processes.Get(root)
	if !ok {
		return nil
	}
	ended := t.ended[first.Origin] // a child has its parent's origin
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

// subtree returns a living process and its living descendants, children before their parents; nil if it is not alive.
func (t *table) subtree(root int64) []int64 {
	if !t.alive(root) {
		return nil
	}
	found := t.descend(root)
	found.more(math.MaxInt)
	return found.childrenFirst()
}

// descent finds a living process and its living descendants, generation by generation. The tree is as deep and large
// as agents make it, so it does not recurse, and works in slices.
type descent struct {
	table *table
	pids  []int64 // found
	at    int     // the one whose children are being added
	from  int64   // the first child to look for
}

func (t *table) descend(root int64) *descent {
	return &descent{table: t, pids: []int64{root}, from: math.MinInt64}
}

// more continues, checks at most that many processes, and reports whether all are found.
func (d *descent) more(most int) bool {
	for d.at < len(d.pids) {
		if most--; most <= 0 {
			return false
		}
		parent, all := d.pids[d.at], true
		d.table.children.Ascend(edge{parent, d.from}, func(e edge) bool {
			switch {
			case e.parent != parent:
				return false
			case most == 0:
				d.from, all = e.child, false
				return false
			}
			most--
			d.pids = append(d.pids, e.child)
			return true
		})
		if !all {
			return false
		}
		d.at, d.from = d.at+1, math.MinInt64
	}
	return true
}

// childrenFirst are the processes found, children before their parents.
func (d *descent) childrenFirst() []int64 {
	slices.Reverse(d.pids)
	return d.pids
}

// Package resource keeps what each process holds of the resource pools.
package resource

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Ledger is the domain of the resource pools. Its state is what each process holds, and whose
// quotas that counts against; the capacity comes from the configuration, the quota of a process
// from its token. An allocation keeps the holder and each granter above it within its quota and the
// pool within its capacity, exactly. It counts against those quotas until it is released, whatever
// is granted later. If a later grant or configuration allows less than is held, nothing is taken
// away, and no more can be reserved until enough is released.
type Ledger struct {
	kernel.Handlers
	pools     []string // ascending
	capacity  map[string]*big.Rat
	tokens    kernel.Tokens
	processes kernel.Processes
	registry  kernel.Registry // see See

	held  *btree.Map[int64, *account]   // by PID
	taken uint64                        // number of snapshots taken
	used  map[int64]map[string]*big.Rat // by PID and resource, what counts against its quota
	total map[string]*big.Rat           // by resource, the sum of all holdings
}

// See sets the view of registered syscalls. Without it none can be checked.
func (l *Ledger) See(registry kernel.Registry) { l.registry = registry }

// account is what a process holds, by resource, without zeros. Snapshots share accounts: one from before the last
// snapshot is copied on change.
type account struct {
	charges map[string][]charge
	taken   uint64 // number of snapshots that it was copied for
}

// charge is an amount that a process holds, and the granters whose quota it counts against besides its own.
type charge struct {
	against []int64
	amount  *big.Rat
}

var _ kernel.Domain = (*Ledger)(nil)

// ErrCapacity says that a pool's capacity is invalid.
var ErrCapacity = errors.New("capacity of a pool must be a finite number of at least 0")

// New returns a ledger without holdings, for pools with their capacity. The views give the quota and the ancestors of
// each process. It returns ErrCapacity for an invalid capacity.
func New(pools map[string]float64, tokens kernel.Tokens, processes kernel.Processes) (*Ledger, error) {
	l := &Ledger{
		pools:     slices.Sorted(maps.Keys(pools)),
		capacity:  make(map[string]*big.Rat, len(pools)),
		tokens:    tokens,
		processes: processes,
	}
	l.Handlers = kernel.Bind(schema.Resource,
		kernel.Command(schema.SyscallAlloc, l.decideAlloc, l.applyAlloc),
		kernel.Command(schema.SyscallRelease, l.decideRelease, l.applyRelease),
		kernel.Query(schema.SyscallQuery, l.query),
		kernel.Query(schema.CapabilityGet, l.get),
		kernel.Query(schema.CapabilityCheck, l.check),
		kernel.Step(schema.ResourceFree, free, l.applyFree),
	)
	for _, name := range l.pools {
		units := pools[name]
		if !(units >= 0) || math.IsInf(units, 1) {
			return nil, fmt.Errorf("pool %s has %v: %w", name, units, ErrCapacity)
		}
		l.capacity[name] = exact(units)
	}
	l.Reset()
	return l, nil
}

func free(*kernel.Call, *schema.ResourceFreeInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

func (l *Ledger) applyFree(_ *kernel.Entry, in *schema.ResourceFreeInput) {
	for _, pid := range in.PIDs {
		for resource, charges := range l.heldBy(pid) { // which is copied before it is changed
			l.giveBack(pid, resource, sumOf(charges))
		}
	}
}

// book adds a charge to what pid holds of a resource.
func (l *Ledger) book(pid int64, resource string, c charge) {
	if c.amount.Sign() == 0 {
		return
	}
	l.count(pid, resource, c.against, c.amount)
	account := l.own(pid).charges
	charges := account[resource]
	if last := len(charges) - 1; last >= 0 && slices.Equal(charges[last].against, c.against) {
		charges[last].amount = plus(charges[last].amount, c.amount)
		return
	}
	account[resource] = append(charges, c)
}

// giveBack releases amount of what pid holds of a resource, the latest charges first.
func (l *Ledger) giveBack(pid int64, resource string, amount *big.Rat) {
	if l.heldBy(pid) == nil {
		return
	}
	account := l.own(pid).charges
	for charges := account[resource]; amount.Sign() > 0 && len(charges) > 0; charges = account[resource] {
		last := &charges[len(charges)-1]
		part := amount
		if last.amount.Cmp(part) <= 0 {
			part = last.amount
			account[resource] = charges[:len(charges)-1]
		} else {
			last.amount = new(big.Rat).Sub(last.amount, part)
		}
		l.count(pid, resource, last.against, new(big.Rat).Neg(part))
		amount = new(big.Rat).Sub(amount, part)
	}
	if len(account[resource]) == 0 {
		delete(account, resource)
	}
	if len(account) == 0 {
		l.held.Delete(pid)
	}
}

// count adds amount, which may be negative, to what counts against the quota of pid and of the granters above it, and
// to the sum of all.
func (l *Ledger) count(pid int64, resource string, against []int64, amount *big.Rat) {
	add(l.total, resource, amount)
	l.use(pid, resource, amount)
	for _, pid := range against {
		l.use(pid, resource, amount)
	}
}

func (l *Ledger) use(pid int64, resource string, amount *big.Rat) {
	if l.used[pid] == nil {
		l.used[pid] = map[string]*big.Rat{}
	}
	if add(l.used[pid], resource, amount); len(l.used[pid]) == 0 {
		delete(l.used, pid)
	}
}

// heldBy returns what pid holds, by resource: nil if nothing. It must not be changed.
func (l *Ledger) heldBy(pid int64) map[string][]charge {
	if a, ok := l.held.Get(pid); ok {
		return a.charges
	}
	return nil
}

// own returns the account of pid for a change.
func (l *Ledger) own(pid int64) *account {
	before, ok := l.held.Get(pid)
	if ok && before.taken == l.taken {
		return before
	}
	own := &account{charges: make(map[string][]charge, 1), taken: l.taken}
	if ok {
		for resource, charges := range before.charges {
			own.charges[resource] = slices.Clone(charges)
		}
	}
	l.held.Set(pid, own)
	return own
}

// sum returns what pid holds of a resource.
func (l *Ledger) sum(pid int64, resource string) *big.Rat { return sumOf(l.heldBy(pid)[resource]) }

func sumOf(charges []charge) *big.Rat {
	sum := new(big.Rat)
	for _, c := range charges {
		sum.Add(sum, c.amount)
	}
	return sum
}

// add changes one sum; a sum of 0 is removed, so that nothing remains of what was released.
func add(sums map[string]*big.Rat, resource string, amount *big.Rat) {
	sum := plus(sums[resource], amount)
	if sum.Sign() == 0 {
		delete(sums, resource)
		return
	}
	sums[resource] = sum
}

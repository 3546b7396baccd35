// Package resource keeps who holds how much of which pool.
package resource

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Ledger is the domain of the resource pools. Its state is what each process holds; how much there is comes from the
// configuration, how much a process may hold from its token. An allocation leaves the holder within its quota and the
// pool within its capacity, both exactly. Where a later grant or configuration allows less than is held already, nothing
// is taken away, and nothing more is given until enough has been released.
type Ledger struct {
	pools     []string // ascending
	capacity  map[string]*big.Rat
	tokens    kernel.Tokens
	processes kernel.Processes

	held  map[int64]map[string]*big.Rat // by PID and resource; nobody holds 0
	total map[string]*big.Rat           // by resource, what is held in all
	chunk *schema.Type
}

var _ kernel.Domain = (*Ledger)(nil)

// ErrCapacity says that a pool cannot have the capacity that it was given.
var ErrCapacity = errors.New("capacity of a pool must be a finite number of at least 0")

// New returns a ledger in which nobody holds anything of the pools, given with their capacity. The views say what each
// process may hold, and who descends from whom. It returns ErrCapacity for a capacity that is none.
func New(pools map[string]float64, tokens kernel.Tokens, processes kernel.Processes) (*Ledger, error) {
	l := &Ledger{
		pools:     slices.Sorted(maps.Keys(pools)),
		capacity:  make(map[string]*big.Rat, len(pools)),
		tokens:    tokens,
		processes: processes,
		chunk:     schema.TypeOf[[]Holding](),
	}
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

// Decide answers the syscalls of schema.Resource.
func (l *Ledger) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.AllocInput:
		if call.Syscall.Type == releaseType {
			return l.decideRelease(call.PID, in)
		}
		return l.decideAlloc(call, in)
	case *schema.ResourceQueryInput:
		return l.query(in.ResourceID)
	case *schema.CapabilityGetInput:
		return l.get(call, in)
	case *schema.CheckInput:
		return l.check(call, in)
	case *schema.ResourceFreeInput:
		return kernel.Result{Data: []byte(`{"success":true}`)}, nil
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply books what was allocated, released or freed.
func (l *Ledger) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.AllocInput:
		amount := exact(in.Amount)
		if call.Syscall.Type == releaseType {
			amount.Neg(amount)
		}
		l.book(call.PID, in.ResourceID, amount)
	case *schema.ResourceFreeInput:
		for _, pid := range in.PIDs {
			for resource, amount := range l.held[pid] {
				l.book(pid, resource, new(big.Rat).Neg(amount))
			}
		}
	}
}

// The rows that look at pools.
const (
	allocType   = "Syscall.Alloc"
	releaseType = "Syscall.Release"
	queryType   = "Syscall.Query"
)

// book adds amount, which may be negative, to what pid holds of a resource.
func (l *Ledger) book(pid int64, resource string, amount *big.Rat) {
	account := l.held[pid]
	if account == nil {
		account = map[string]*big.Rat{}
		l.held[pid] = account
	}
	add(account, resource, amount)
	add(l.total, resource, amount)
	if len(account) == 0 {
		delete(l.held, pid)
	}
}

// add changes one sum; a sum of 0 is not kept, so that what came and went leaves no trace.
func add(sums map[string]*big.Rat, resource string, amount *big.Rat) {
	sum := plus(sums[resource], amount)
	if sum.Sign() == 0 {
		delete(sums, resource)
		return
	}
	sums[resource] = sum
}

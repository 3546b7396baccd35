package resource

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// Holding is what a process holds of one resource, or the part of it that counts against the same granters.
type Holding struct {
	PID        int64   `json:"pid" min:"0"`
	ResourceID string  `json:"resource_id"`
	Amount     string  `json:"amount"` // a decimal with all its digits
	Against    []int64 `json:"counted_against,omitzero"`
}

// chunkHoldings is how many holdings a chunk of a snapshot holds.
const chunkHoldings = 1000

// booked is a holding as the ledger has it. Amounts are never changed in place, so it stays what it is.
type booked struct {
	pid      int64
	resource string
	charge
}

func (b *booked) holding() Holding {
	return Holding{b.pid, b.resource, string(text(b.amount)), b.against}
}

// Holders returns the PIDs that hold anything, ascending: recovery takes away what belongs to nobody alive.
func (l *Ledger) Holders() []int64 { return l.held.Keys() }

// Holdings returns what pid holds, by ascending resource.
func (l *Ledger) Holdings(pid int64) []Holding {
	list := make([]Holding, 0, len(l.heldBy(pid)))
	for _, resource := range slices.Sorted(maps.Keys(l.heldBy(pid))) {
		for _, c := range l.heldBy(pid)[resource] {
			b := booked{pid, resource, c}
			list = append(list, b.holding())
		}
	}
	return list
}

// Snapshot implements kernel.Domain: chunks of holdings, as JSON arrays, by ascending PID and resource. It takes constant time.
func (l *Ledger) Snapshot() func(write func(chunk []byte) error) error {
	l.taken++
	held := l.held.Copy()
	return func(write func(chunk []byte) error) error {
		var list []booked
		held.Scan(func(pid int64, a *account) bool {
			for resource, charges := range a.charges {
				for _, c := range charges {
					list = append(list, booked{pid, resource, c})
				}
			}
			return true
		})
		slices.SortStableFunc(list, func(a, b booked) int {
			return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.resource, b.resource))
		})
		for part := range slices.Chunk(list, chunkHoldings) {
			holdings := make([]Holding, len(part))
			for i := range part {
				holdings[i] = part[i].holding()
			}
			chunk, err := schema.Marshal(holdings)
			if err != nil {
				return fmt.Errorf("snapshot holdings: %w", err)
			}
			if err := write(chunk); err != nil {
				return fmt.Errorf("snapshot holdings: %w", err)
			}
		}
		return nil
	}
}

// Reset implements kernel.Domain.
func (l *Ledger) Reset() {
	l.held = btree.NewMap[int64, *account](0)
	l.used = map[int64]map[string]*big.Rat{}
	l.total = map[string]*big.Rat{}
}

// ErrHolding says that a snapshot holds an amount that is none.
var ErrHolding = errors.New("amount of a holding must be a decimal above 0")

// Restore implements kernel.Domain.
func (l *Ledger) Restore(chunk []byte) error {
	if !schema.Valid(chunk) {
		return errors.New("restore holdings: chunk is no JSON")
	}
	list, err := l.chunk.Decode(chunk)
	if err != nil {
		return fmt.Errorf("restore holdings: %w", err)
	}
	for _, h := range *list.(*[]Holding) {
		amount, ok := parse(h.Amount)
		if !ok {
			return fmt.Errorf("restore holding of pid %d of %s: %w", h.PID, h.ResourceID, ErrHolding)
		}
		l.book(h.PID, h.ResourceID, charge{h.Against, amount})
	}
	return nil
}

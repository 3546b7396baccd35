package resource

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
)

// Holding is what a process holds of one resource, or the part of it that counts against the same granters.
type Holding struct {
	PID        int64   `json:"pid" min:"0"`
	ResourceID string  `json:"resource_id"`
	Amount     string  `json:"amount"` // a decimal with all its digits
	Against    []int64 `json:"counted_against,omitzero"`
}

var records = kernel.RecordsOf[Holding]()

// Holders returns the PIDs that hold anything, ascending, so that recovery can release what ended
// processes held.
func (l *Ledger) Holders() []int64 { return l.held.Keys() }

// Holdings returns what pid holds, by ascending resource.
func (l *Ledger) Holdings(pid int64) []Holding {
	list := []Holding{}
	eachHolding(pid, l.heldBy(pid), func(h Holding) bool {
		list = append(list, h)
		return true
	})
	return list
}

// eachHolding calls yield with what pid holds, by ascending resource, until yield returns false.
func eachHolding(pid int64, held map[string][]charge, yield func(Holding) bool) bool {
	for _, resource := range slices.Sorted(maps.Keys(held)) {
		for _, c := range held[resource] {
			if !yield(Holding{pid, resource, string(text(c.amount)), c.against}) {
				return false
			}
		}
	}
	return true
}

// Snapshot implements kernel.Domain: the holdings by ascending PID and resource. It takes constant time.
func (l *Ledger) Snapshot() func(write func(chunk []byte) error) error {
	l.taken++
	held := l.held.Copy()
	return records.Writer(func(yield func(Holding) bool) {
		held.Scan(func(pid int64, a *account) bool { return eachHolding(pid, a.charges, yield) })
	})
}

// Reset implements kernel.Domain.
func (l *Ledger) Reset() {
	l.held = btree.NewMap[int64, *account](0)
	l.used = map[int64]map[string]*big.Rat{}
	l.total = map[string]*big.Rat{}
}

// ErrHolding reports an invalid amount in a snapshot.
var ErrHolding = errors.New("amount of a holding must be a decimal above 0")

// Restore implements kernel.Domain.
func (l *Ledger) Restore(chunk []byte) error {
	return records.Read(chunk, func(h *Holding) error {
		amount, ok := parse(h.Amount)
		if !ok {
			return fmt.Errorf("holding of pid %d of %s: %w", h.PID, h.ResourceID, ErrHolding)
		}
		l.book(h.PID, h.ResourceID, charge{h.Against, amount})
		return nil
	})
}

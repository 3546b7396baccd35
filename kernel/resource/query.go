package resource

import (
	"math/big"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
)

// query answers Syscall.Query.
func (l *Ledger) query(resource string) (kernel.Result, error) {
	capacity, ok := l.capacity[resource]
	if !ok {
		return kernel.Result{}, l.unknown(resource)
	}
	total := orZero(l.total[resource])
	data := append([]byte(`{"available":`), text(available(capacity, total))...)
	data = append(append(data, `,"capacity":`...), text(capacity)...)
	data = append(data, `,"utilization":`...)
	data = strconv.AppendFloat(data, utilization(capacity, total), 'f', -1, 64)
	return kernel.Result{Data: append(data, '}')}, nil
}

// available is what nobody holds: nothing where the configuration has less than is held already.
func available(capacity, total *big.Rat) *big.Rat {
	if total.Cmp(capacity) >= 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(capacity, total)
}

// utilization is the share that is held, 0 to 1. Of a pool of nothing nothing is held.
func utilization(capacity, total *big.Rat) float64 {
	switch {
	case total.Sign() == 0:
		return 0
	case total.Cmp(capacity) >= 0:
		return 1
	}
	share, _ := new(big.Rat).Quo(total, capacity).Float64()
	return share
}

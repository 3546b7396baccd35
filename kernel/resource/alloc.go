package resource

import (
	"math/big"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

func (l *Ledger) decideAlloc(call *kernel.Call, in *schema.AllocInput) (kernel.Result, error) {
	amount := exact(in.Amount)
	reserved, err := l.alloc(call.PID, call.Token, in.ResourceID, amount)
	if err != nil {
		return kernel.Result{}, err
	}
	data := schema.AppendString([]byte(`{"resource_id":`), in.ResourceID)
	data = append(append(data, `,"amount":`...), text(amount)...)
	data = append(append(data, `,"reserved":`...), text(reserved)...)
	return kernel.Result{Data: append(data, '}')}, nil
}

// alloc returns what pid, holding token, would hold in all with amount more of a resource, or the error that the
// allocation gets: no such pool 404, beyond the quota 429, beyond the capacity 507. The operator acting as itself has no
// quota. An amount of 0 is allowed wherever a larger one could be: it shows what is held.
func (l *Ledger) alloc(pid int64, token *kernel.Token, resource string, amount *big.Rat) (*big.Rat, *schema.Error) {
	capacity, ok := l.capacity[resource]
	if !ok {
		return nil, l.unknown(resource)
	}
	held := orZero(l.held[pid][resource])
	reserved := plus(held, amount)
	if pid != kernel.Operator {
		quota := new(big.Rat)
		if token != nil {
			quota = exact(token.Quota(resource))
		}
		if reserved.Cmp(quota) > 0 {
			return nil, schema.Errorf(schema.QuotaExceeded, "quota of %s exceeded: pid %d may hold %s, holds %s and asked for %s: release some, or have a larger quota granted",
				resource, pid, text(quota), text(held), text(amount))
		}
	}
	total := orZero(l.total[resource])
	if plus(total, amount).Cmp(capacity) > 0 {
		return nil, schema.Errorf(schema.Insufficient, "pool %s is exhausted: %s of its %s are held, %s are available and %s were asked for: ask for less, or again once others have released",
			resource, text(total), text(capacity), text(available(capacity, total)), text(amount))
	}
	return reserved, nil
}

func (l *Ledger) decideRelease(pid int64, in *schema.AllocInput) (kernel.Result, error) {
	amount := exact(in.Amount)
	if err := l.release(pid, in.ResourceID, amount); err != nil {
		return kernel.Result{}, err
	}
	data := schema.AppendString([]byte(`{"resource_id":`), in.ResourceID)
	data = append(append(data, `,"amount":`...), text(amount)...)
	return kernel.Result{Data: append(data, '}')}, nil
}

// release returns the error that giving amount back gets: no such pool 404, more than is held 409. What is held of a
// pool that the configuration has no more can still be given back.
func (l *Ledger) release(pid int64, resource string, amount *big.Rat) *schema.Error {
	held, holds := l.held[pid][resource]
	if _, pool := l.capacity[resource]; !pool && !holds {
		return l.unknown(resource)
	}
	if held = orZero(held); amount.Cmp(held) > 0 {
		return schema.Errorf(schema.Conflict, "pid %d holds %s of %s and cannot release %s: release no more than it holds",
			pid, text(held), resource, text(amount))
	}
	return nil
}

func (l *Ledger) unknown(resource string) *schema.Error {
	return schema.Errorf(schema.NotFound, "no resource is named %q: %s", resource, kernel.Pools(l.pools))
}

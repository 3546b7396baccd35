package resource

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

func (l *Ledger) decideAlloc(call *kernel.Call, in *schema.AllocInput) (kernel.Result, error) {
	amount := exact(in.Amount)
	reserved, against, err := l.alloc(call.PID, call.Token, call.Tick, in.ResourceID, amount)
	if err != nil {
		return kernel.Result{}, err
	}
	data := schema.AppendString([]byte(`{"resource_id":`), in.ResourceID)
	data = append(append(data, `,"amount":`...), text(amount)...)
	data = append(append(data, `,"reserved":`...), text(reserved)...)
	for i, pid := range against {
		data = append(data, [...]string{`,"counted_against":[`, `,`}[min(i, 1)]...)
		data = strconv.AppendInt(data, pid, 10)
	}
	if len(against) > 0 {
		data = append(data, ']')
	}
	return kernel.Result{Data: append(data, '}')}, nil
}

// alloc returns what pid, holding token, would hold in all with amount more of a resource, and the granters whose quota that
// counts against, or the error that the allocation gets: no such pool 404, beyond the quota of one of them 429, beyond the
// capacity 507. The operator acting as itself has no quota. An amount of 0 is allowed wherever a larger one could be: it
// shows what is held.
func (l *Ledger) alloc(pid int64, token *kernel.Token, tick int64, resource string, amount *big.Rat) (*big.Rat, []int64, *schema.Error) {
	capacity, ok := l.capacity[resource]
	if !ok {
		return nil, nil, l.unknown(resource)
	}
	var against []int64
	if pid != kernel.Operator {
		var err *schema.Error
		if against, err = l.within(pid, token, tick, resource, amount); err != nil {
			return nil, nil, err
		}
	}
	total := orZero(l.total[resource])
	if plus(total, amount).Cmp(capacity) > 0 {
		return nil, nil, schema.Errorf(schema.Insufficient, "pool %s is exhausted: %s of its %s are held, %s are available and %s were asked for: ask for less, or again once others have released",
			resource, text(total), text(capacity), text(available(capacity, total)), text(amount))
	}
	return plus(l.sum(pid, resource), amount), against, nil
}

// within checks amount against the quota of pid, and of each granter above it, whose quota bounds what it and those below hold
// by its grants. It returns those granters, the nearest first.
func (l *Ledger) within(pid int64, token *kernel.Token, tick int64, resource string, amount *big.Rat) (against []int64, err *schema.Error) {
	for of := pid; ; token = token.Granter {
		quota, granter := new(big.Rat), int64(kernel.Operator)
		if token != nil {
			if g := token.QuotaGrant(resource); g != nil {
				granter = g.GrantedBy
				if g.ExpiresAtTick == nil || tick <= *g.ExpiresAtTick {
					quota = exact(g.ResourceQuotas[resource])
				}
			}
		}
		if used := orZero(l.used[of][resource]); plus(used, amount).Cmp(quota) > 0 {
			return nil, l.exceeded(pid, of, resource, quota, used, amount)
		}
		if of = granter; of == kernel.Operator {
			return against, nil
		}
		against = append(against, of)
	}
}

// exceeded is the error of a quota that an allocation of pid's would exceed: its own, or that of a granter above it.
func (l *Ledger) exceeded(pid, of int64, resource string, quota, used, amount *big.Rat) *schema.Error {
	own := l.sum(of, resource)
	held := text(own)
	if used.Cmp(own) > 0 {
		held += " with " + text(new(big.Rat).Sub(used, own)) + " more held by its grants"
	}
	above, asked := "", "asked"
	if of != pid {
		above, asked = fmt.Sprintf(" of pid %d, which granted it,", of), fmt.Sprintf("pid %d asked", pid)
	}
	return schema.Errorf(schema.QuotaExceeded,
		`quota of %s%s exceeded: pid %d may hold %s, holds %s and %s for %s: release some, or allow more with "pwos cap grant %d --add --quota %s=%s"`,
		resource, above, of, text(quota), held, asked, text(amount), of, resource, text(plus(used, amount)))
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
	charges, holds := l.held[pid][resource]
	if _, pool := l.capacity[resource]; !pool && !holds {
		return l.unknown(resource)
	}
	if held := sumOf(charges); amount.Cmp(held) > 0 {
		return schema.Errorf(schema.Conflict, "pid %d holds %s of %s and cannot release %s: release no more than it holds",
			pid, text(held), resource, text(amount))
	}
	return nil
}

func (l *Ledger) unknown(resource string) *schema.Error {
	return schema.Errorf(schema.NotFound, "no resource is named %q: %s", resource, kernel.Pools(l.pools))
}

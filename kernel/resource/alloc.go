package resource

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func (l *Ledger) decideAlloc(call *kernel.Call, in *schema.AllocInput) (schema.AllocOutput, error) {
	amount := exact(in.Amount)
	reserved, against, err := l.alloc(call.PID, call.Token, call.Tick, in.ResourceID, amount)
	if err != nil {
		return schema.AllocOutput{}, err
	}
	return schema.AllocOutput{ResourceID: in.ResourceID, Amount: text(amount), Reserved: text(reserved), Against: against}, nil
}

// applyAlloc charges the granters that the answer names: in a replay the tokens may differ. Older journals name none.
func (l *Ledger) applyAlloc(e *kernel.Entry, in *schema.AllocInput) {
	var against []int64
	if bytes.Contains(e.Data, []byte(`"counted_against"`)) {
		out, err := schema.SyscallAlloc.Output().Decode(e.Data)
		if err != nil {
			panic(fmt.Sprintf("resource: apply Syscall.Alloc: %v", err)) // no kernel has written that
		}
		against = out.(*schema.AllocOutput).Against
	}
	l.book(e.PID, in.ResourceID, charge{against, exact(in.Amount)})
}

// alloc returns what pid, holding token, would have of a resource with amount more, and the
// granters whose quota that counts against. It fails with 404 for an unknown pool, 429 beyond the
// quota of one of them, 507 beyond the capacity. The operator acting as itself has no quota. An
// amount of 0 is allowed whenever a larger one could be, and shows what is held.
func (l *Ledger) alloc(pid int64, token *kernel.Token, tick int64, resource string, amount *big.Rat) (*big.Rat, []int64, error) {
	capacity, ok := l.capacity[resource]
	if !ok {
		return nil, nil, l.unknown(resource)
	}
	var against []int64
	if pid != kernel.Operator {
		var err error
		if against, err = l.within(pid, token, tick, resource, amount); err != nil {
			return nil, nil, err
		}
	}
	total := orZero(l.total[resource])
	if plus(total, amount).Cmp(capacity) > 0 {
		return nil, nil, fault.ResourceExhausted.New("pool %s is exhausted: %s of its %s are held, %s are free and %s were requested: request less, or try again once others have released some",
			resource, text(total), text(capacity), text(available(capacity, total)), text(amount)).With("resource", resource)
	}
	return plus(l.sum(pid, resource), amount), against, nil
}

// within checks amount against the quota of pid, and of each granter above it, whose quota bounds what it and those
// below it hold by its grants. It returns those granters, the nearest first.
func (l *Ledger) within(pid int64, token *kernel.Token, tick int64, resource string, amount *big.Rat) (against []int64, err error) {
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

// exceeded is the error of a quota that an allocation of pid would exceed: its own, or a granter's.
func (l *Ledger) exceeded(pid, of int64, resource string, quota, used, amount *big.Rat) error {
	own := l.sum(of, resource)
	held := string(text(own))
	if used.Cmp(own) > 0 {
		held += " with " + string(text(new(big.Rat).Sub(used, own))) + " more held by its grants"
	}
	above, asked := "", "asked"
	if of != pid {
		above, asked = fmt.Sprintf(" of pid %d, which granted it,", of), fmt.Sprintf("pid %d asked", pid)
	}
	return fault.ResourceQuota.New(
		"quota of %s%s exceeded: pid %d may hold %s, holds %s and %s for %s: release some, or allow more with %s",
		resource, above, of, text(quota), held, asked, text(amount), kernel.AddCommand(nil, of, 0, "--quota", resource+"="+string(text(plus(used, amount))))).With("resource", resource).With("pid", strconv.FormatInt(of, 10))
}

func (l *Ledger) decideRelease(call *kernel.Call, in *schema.AllocInput) (schema.ReleaseOutput, error) {
	amount := exact(in.Amount)
	if err := l.release(call.PID, in.ResourceID, amount); err != nil {
		return schema.ReleaseOutput{}, err
	}
	return schema.ReleaseOutput{ResourceID: in.ResourceID, Amount: text(amount)}, nil
}

func (l *Ledger) applyRelease(e *kernel.Entry, in *schema.AllocInput) {
	l.giveBack(e.PID, in.ResourceID, exact(in.Amount))
}

// release fails with 404 for an unknown pool, 409 if amount is more than is held. Holdings of a
// pool that is no longer configured can still be released.
func (l *Ledger) release(pid int64, resource string, amount *big.Rat) error {
	charges, holds := l.heldBy(pid)[resource]
	if _, pool := l.capacity[resource]; !pool && !holds {
		return l.unknown(resource)
	}
	if held := sumOf(charges); amount.Cmp(held) > 0 {
		return fault.ResourceNotHeld.New("pid %d holds %s of %s and cannot release %s: release at most what it holds",
			pid, text(held), resource, text(amount)).With("resource", resource)
	}
	return nil
}

func (l *Ledger) unknown(resource string) error {
	return fault.ResourceNotFound.New("no resource is named %q: %s", resource, kernel.Pools(l.pools)).With("resource", resource)
}

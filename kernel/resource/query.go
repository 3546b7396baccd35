package resource

import (
	"math/big"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func (l *Ledger) query(_ *kernel.Call, in *schema.ResourceQueryInput) (schema.ResourceQueryOutput, error) {
	capacity, ok := l.capacity[in.ResourceID]
	if !ok {
		return schema.ResourceQueryOutput{}, l.unknown(in.ResourceID)
	}
	total := orZero(l.total[in.ResourceID])
	return schema.ResourceQueryOutput{
		Available: text(available(capacity, total)), Capacity: text(capacity),
		Utilization: schema.Decimal(strconv.FormatFloat(utilization(capacity, total), 'f', -1, 64)),
	}, nil
}

// available is the free part of the pool: 0 if the configuration has less than is held.
func available(capacity, total *big.Rat) *big.Rat {
	if total.Cmp(capacity) >= 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(capacity, total)
}

// utilization is the share that is held, 0 to 1. For an empty pool it is 0.
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

// get returns the token, and how much of each quota is held.
func (l *Ledger) get(call *kernel.Call, in *schema.CapabilityGetInput) (out schema.CapabilityGetOutput, err error) {
	pid := call.PID
	if in.PID != nil {
		pid = *in.PID
	}
	if err := kernel.MayAskAbout(l.processes, call.PID, pid); err != nil {
		return out, err
	}
	token := l.token(pid)
	if token == nil {
		return out, l.withoutToken(pid)
	}
	held := map[string]schema.Decimal{}
	for resource := range token.Granted.ResourceQuotas {
		held[resource] = "0"
	}
	for resource, charges := range l.heldBy(pid) {
		held[resource] = text(sumOf(charges))
	}
	return schema.CapabilityGetOutput{Token: token.Granted, Effective: token.Effective(call.Tick), Held: held, HeldBelow: l.heldBelow(pid)}, nil
}

// heldBelow is what other processes hold that counts against the quotas of pid, or nil.
func (l *Ledger) heldBelow(pid int64) (held map[string]schema.Decimal) {
	for resource, used := range l.used[pid] {
		below := new(big.Rat).Sub(used, l.sum(pid, resource))
		if below.Sign() == 0 {
			continue
		}
		if held == nil {
			held = map[string]schema.Decimal{}
		}
		held[resource] = text(below)
	}
	return held
}

func (l *Ledger) withoutToken(pid int64) error {
	if pid == kernel.Operator {
		return fault.CapabilityNotFound.New("pid 0 is the operator: it has no token and needs none; name a pid")
	}
	why := kernel.BeyondGrant(l.processes, pid)
	if why == "" {
		why = "grant it one with " + kernel.AddCommand(nil, pid, 0, "SYSCALL...")
	}
	return fault.CapabilityNotFound.New("pid %d has no token: %s", pid, why).With("pid", strconv.FormatInt(pid, 10))
}

// token returns the token of a process, nil if it has none. A pid that no process ever had can have a token too: a spawn
// that fails half-way leaves that of its child to the next spawn, which replaces it.
func (l *Ledger) token(pid int64) *kernel.Token {
	if l.processes.Process(pid) == nil {
		return nil
	}
	return l.tokens.Token(pid)
}

// check reports whether the call would pass capability and quota now. It runs the call's own checks, so that the reason
// is word for word the call's.
func (l *Ledger) check(call *kernel.Call, in *schema.CheckInput) (schema.CheckOutput, error) {
	pid := in.Of(call.PID)
	if err := kernel.MayAskAbout(l.processes, call.PID, pid); err != nil {
		return schema.CheckOutput{}, err
	}
	if denied, ok := kernel.AuthorizeName(l.processes, pid, l.token(pid), in.Syscall, call.Tick, kernel.Serves(l.registry, call.Origin, l.token(pid), call.Tick)); ok {
		return checked(denied), nil
	}
	row, ok := kernel.Named(in.Syscall)
	if !ok && kernel.Known(l.registry, call.Origin)(in.Syscall) {
		return checked(kernel.AuthorizeRegistered(l.processes, pid, l.token(pid), in.Syscall, call.Tick)), nil
	}
	if !ok {
		if like := schema.NearestType(in.Syscall); like != "" {
			return schema.CheckOutput{}, fault.WireUnknownSyscall.New("no syscall %s; did you mean %s?", in.Syscall, like).With("syscall", fault.Clip(in.Syscall))
		}
		return schema.CheckOutput{}, fault.WireUnknownSyscall.New("no syscall has the type or code %q: Syscall.List names them all", in.Syscall).With("syscall", fault.Clip(in.Syscall))
	}
	if in.Amount != nil && in.ResourceID == nil {
		return schema.CheckOutput{}, kernel.Invalid("resource_id", "is missing: amount is of a resource")
	}
	token := l.token(pid)
	if denied := kernel.Authorize(l.processes, pid, token, row, call.Tick); denied != nil {
		return checked(denied), nil
	}
	if why := kernel.PartlyGranted(pid, token, row, call.Tick); why != "" {
		return schema.CheckOutput{Reason: why}, nil
	}
	if in.ResourceID != nil {
		if err := l.checkResource(row, pid, token, call.Tick, in); err != nil {
			return checked(fault.Of(err)), nil
		}
	}
	return checked(nil), nil
}

// checked is the answer about a call that would be refused with a fault; nil: it would not.
func checked(denied *fault.Fault) schema.CheckOutput {
	if denied == nil {
		return schema.CheckOutput{Allowed: true}
	}
	return schema.CheckOutput{Reason: denied.Text()}
}

// checkResource runs the checks of syscalls that name a resource; the others do not use one.
func (l *Ledger) checkResource(row *schema.Syscall, pid int64, token *kernel.Token, tick int64, in *schema.CheckInput) error {
	amount := new(big.Rat)
	if in.Amount != nil {
		amount = exact(*in.Amount)
	}
	switch row {
	case schema.SyscallAlloc.Syscall:
		_, _, err := l.alloc(pid, token, tick, *in.ResourceID, amount)
		return err
	case schema.SyscallRelease.Syscall:
		return l.release(pid, *in.ResourceID, amount)
	case schema.SyscallQuery.Syscall:
		if _, ok := l.capacity[*in.ResourceID]; !ok {
			return l.unknown(*in.ResourceID)
		}
	}
	return nil
}

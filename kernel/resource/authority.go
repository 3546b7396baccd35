package resource

import (
	"maps"
	"math/big"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// get answers Capability.Get: the token, and what is held of each quota.
func (l *Ledger) get(call *kernel.Call, in *schema.CapabilityGetInput) (kernel.Result, error) {
	pid := call.PID
	if in.PID != nil {
		pid = *in.PID
	}
	if err := l.sees(call.PID, pid); err != nil {
		return kernel.Result{}, err
	}
	token := l.tokens.Token(pid)
	if token == nil {
		return kernel.Result{}, l.withoutToken(pid)
	}
	data, err := schema.Marshal(struct {
		schema.Token
		Effective schema.Effective `json:"effective"`
	}{token.Granted, token.Effective(call.Tick)})
	if err != nil {
		return kernel.Result{}, err
	}
	data = append(data[:len(data)-len(`}`)], `,"held":{`...)
	for i, resource := range l.concerned(token) {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(schema.AppendString(data, resource), ':')
		data = append(data, text(l.sum(pid, resource))...)
	}
	return kernel.Result{Data: append(l.appendBelow(append(data, '}'), pid), '}')}, nil
}

// appendBelow appends what counts against the quotas of pid without being held by it, where there is any.
func (l *Ledger) appendBelow(data []byte, pid int64) []byte {
	first := true
	for _, resource := range slices.Sorted(maps.Keys(l.used[pid])) {
		below := new(big.Rat).Sub(l.used[pid][resource], l.sum(pid, resource))
		if below.Sign() == 0 {
			continue
		}
		if data = append(data, ','); first {
			data = append(data, `"held_below":{`...)
		}
		first = false
		data = append(append(schema.AppendString(data, resource), ':'), text(below)...)
	}
	if !first {
		data = append(data, '}')
	}
	return data
}

func (l *Ledger) withoutToken(pid int64) *schema.Error {
	if pid == kernel.Operator {
		return schema.Errorf(schema.NotFound, "pid 0 is the operator: it has no token and needs none; name a pid")
	}
	if why := kernel.BeyondGrant(l.processes, pid); why != "" {
		return schema.Errorf(schema.NotFound, "pid %d has no token: %s", pid, why)
	}
	return schema.Errorf(schema.NotFound, `pid %d has no token: grant it one with "pwos cap grant %d --add SYSCALL..."`, pid, pid)
}

// concerned names the resources that the holder of token has a quota of or holds, ascending.
func (l *Ledger) concerned(token *kernel.Token) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(token.Granted.ResourceQuotas)), maps.Keys(l.held[token.PID()]))
	slices.Sort(names)
	return slices.Compact(names)
}

// check answers Capability.Check: whether the call would pass capability and quota now. It asks what the call itself
// would be asked, so that the reason is word for word what the call would get.
func (l *Ledger) check(call *kernel.Call, in *schema.CheckInput) (kernel.Result, error) {
	if err := l.sees(call.PID, in.PID); err != nil {
		return kernel.Result{}, err
	}
	row, ok := kernel.Named(in.Syscall)
	if !ok {
		if like := schema.NearestType(in.Syscall); like != "" {
			return kernel.Result{}, schema.Errorf(schema.UnknownSyscall, "no syscall %s; did you mean %s?", in.Syscall, like)
		}
		return kernel.Result{}, schema.Errorf(schema.UnknownSyscall, "no syscall has the type or code %q: Syscall.List names them all", in.Syscall)
	}
	if in.Amount != nil && in.ResourceID == nil {
		return kernel.Result{}, kernel.Invalid("resource_id", "is missing: amount is of a resource")
	}
	token := l.tokens.Token(in.PID)
	denied := kernel.Authorize(l.processes, in.PID, token, row, call.Tick)
	if denied == nil && in.ResourceID != nil {
		denied = l.checkResource(row.Type, token, call.Tick, in)
	}
	answer := schema.CheckOutput{Allowed: denied == nil}
	if denied != nil {
		answer.Reason = denied.Text()
	}
	data, err := schema.Marshal(answer)
	return kernel.Result{Data: data}, err
}

// checkResource asks what the syscalls that name a resource ask of it; the others do not look at one.
func (l *Ledger) checkResource(typ string, token *kernel.Token, tick int64, in *schema.CheckInput) *schema.Error {
	amount := new(big.Rat)
	if in.Amount != nil {
		amount = exact(*in.Amount)
	}
	switch typ {
	case allocType:
		_, _, err := l.alloc(in.PID, token, tick, *in.ResourceID, amount)
		return err
	case releaseType:
		return l.release(in.PID, *in.ResourceID, amount)
	case queryType:
		if _, ok := l.capacity[*in.ResourceID]; !ok {
			return l.unknown(*in.ResourceID)
		}
	}
	return nil
}

// sees returns an error where an agent asks about another that does not descend from it: what one may do and holds is
// its ancestors' business.
func (l *Ledger) sees(asking, pid int64) *schema.Error {
	if asking == kernel.Operator || asking == pid || kernel.Descends(l.processes, pid, asking) {
		return nil
	}
	return schema.Errorf(schema.Forbidden, "pid %d may not see what pid %d may do: it is none of its descendants", asking, pid)
}

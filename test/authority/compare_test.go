package authority_test

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// compare asks the kernel for all that the model knows.
func (r *run) compare() error {
	m := r.model
	pools := slices.Sorted(maps.Keys(m.pools))
	keys := slices.Sorted(maps.Keys(m.memory))
	ask := []request{{typ: "Clock.Get", data: `{}`}, {typ: "Process.List", data: `{}`}}
	for _, pool := range pools {
		ask = append(ask, request{typ: "Syscall.Query", data: fmt.Sprintf(`{"resource_id":%q}`, pool)})
	}
	for _, p := range m.procs {
		ask = append(ask, request{typ: "Capability.Get", data: fmt.Sprintf(`{"pid":%d}`, p.pid)})
	}
	for _, key := range keys {
		ask = append(ask, request{typ: "Memory.Get", data: fmt.Sprintf(`{"key":%q}`, key)})
	}
	told, err := r.conn(operator).burst(ask...)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"tick":%d}`, m.tick); told[0].String() != want {
		return fmt.Errorf("the clock shows %s, want %s", told[0], want)
	}
	errs := []error{m.sameProcesses(told[1])}
	told = told[2:]
	for i, pool := range pools {
		errs = append(errs, m.samePool(pool, told[i]))
	}
	told = told[len(pools):]
	for i, p := range m.procs {
		errs = append(errs, m.sameToken(p, told[i]))
	}
	told = told[len(m.procs):]
	for i, key := range keys {
		if told[i].String() != m.memory[key] {
			errs = append(errs, fmt.Errorf("key %s holds %s, want %s", key, told[i], m.memory[key]))
		}
	}
	return errors.Join(errs...)
}

// read decodes an answer of the named syscall.
func read[T any](typ string, a answer) (*T, error) {
	row, _ := schema.Lookup(typ)
	if a.code != 0 {
		return nil, fmt.Errorf("%s: %s", typ, a)
	}
	out, fault := row.Output().Decode(a.data)
	if fault != nil {
		return nil, fmt.Errorf("%s: %w", typ, fault)
	}
	return out.(*T), nil
}

func (m *model) sameProcesses(a answer) error {
	out, err := read[schema.ProcessListOutput]("Process.List", a)
	if err != nil {
		return err
	}
	if len(out.Processes) != len(m.procs) {
		return fmt.Errorf("%d processes, want %d", len(out.Processes), len(m.procs))
	}
	for i, p := range m.procs {
		d, state := &out.Processes[i], "READY"
		if p.exit != nil {
			state = "TERMINATED"
		}
		if d.PID != p.pid || d.ParentPID != p.parent || d.AgentID != p.agent || d.State != state || d.BirthTick != p.birth ||
			!samePointer(d.ExitTick, p.exit) || !sameUnits(d.ResourceQuota, p.quota) || d.Origin != origin {
			return fmt.Errorf("process %+v, want %+v", d, p)
		}
	}
	return nil
}

func (m *model) samePool(pool string, a answer) error {
	out, err := read[schema.ResourceQueryOutput]("Syscall.Query", a)
	if err != nil {
		return err
	}
	if out.Capacity.Float() != m.pools[pool].units() || out.Available.Float() != (m.pools[pool]-m.total(pool)).units() {
		return fmt.Errorf("pool %s: %s, want %s of %s held", pool, a, m.total(pool), m.pools[pool])
	}
	return nil
}

func (m *model) sameToken(p *proc, a answer) error {
	if p.token == nil {
		if a.code != 404 {
			return fmt.Errorf("pid %d: %s, want no token", p.pid, a)
		}
		return nil
	}
	out, err := read[schema.CapabilityGetOutput]("Capability.Get", a)
	if err != nil {
		return err
	}
	if want := p.token.shown(p.pid) + `,"effective":`; !strings.HasPrefix(a.String(), want) {
		return fmt.Errorf("pid %d holds %s, want %s", p.pid, a, want)
	}
	left := &grant{allowed: out.Effective.AllowedSyscalls}
	for _, typ := range types {
		if left.names(typ) != m.may(p.pid, typ) {
			return fmt.Errorf("pid %d is shown %s: whether it may call %s is %v", p.pid, a, typ, m.may(p.pid, typ))
		}
	}
	if !samePointer(out.Effective.ExpiresAtTick, m.last(p.pid)) {
		return fmt.Errorf("pid %d is shown %s, the last tick is another", p.pid, a)
	}
	for pool := range m.pools {
		if out.Effective.ResourceQuotas[pool] != m.quota(p.pid, pool).units() {
			return fmt.Errorf("pid %d is shown %s, want a quota of %s of %s", p.pid, a, m.quota(p.pid, pool), pool)
		}
		held := m.held(p.pid, pool)
		if out.Held[pool].Float() != held.units() || out.HeldBelow[pool].Float() != (m.used(p.pid, pool)-held).units() {
			return fmt.Errorf("pid %d holds %v of %s and %v below it, want %s and %s", p.pid, out.Held[pool], pool, out.HeldBelow[pool], held, m.used(p.pid, pool)-held)
		}
	}
	return nil
}

func samePointer(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func sameUnits(a map[string]float64, b map[string]tenths) bool {
	return maps.EqualFunc(a, b, func(units float64, amount tenths) bool { return units == amount.units() })
}

// replay makes the state anew of the journal alone. Nobody is left with anything who is not alive, the clock stands where
// the model's does, and nothing ran on behalf of a call that was refused.
func (r *run) replay() error {
	if err := r.sameHoldings(); err != nil {
		return err
	}
	var tick int64
	refused, steps := map[string]bool{}, map[string]string{}
	anew, err := r.sys.replay(func(call *kernel.Call) {
		tick = max(tick, call.Tick)
		if call.Syscall == nil {
			return // a query's entry shows its tick only
		}
		if call.Err != nil {
			refused[call.Caller.Conn+"/"+call.Message.Meta.ID] = true
		}
		if call.Syscall.Internal {
			steps[call.Caller.Conn+"/"+call.Message.Meta.Causation] = call.Message.Type
		}
	})
	if err != nil {
		return err
	}
	for cause, typ := range steps {
		if refused[cause] {
			return fmt.Errorf("%s ran for %s, which was refused", typ, cause)
		}
	}
	if tick != r.model.tick {
		return fmt.Errorf("the journal ends at tick %d, want %d", tick, r.model.tick)
	}
	if left := process.Orphans(anew.processes.Alive, anew.tokens.Holders(), anew.ledger.Holders(), anew.mailboxes.Mailboxes()); len(left) > 0 {
		return fmt.Errorf("the dead have left %v", left)
	}
	return nil
}

// sameHoldings looks into the ledger: what is held by who has no token is shown nowhere else.
func (r *run) sameHoldings() error {
	for pid := range int64(len(r.model.procs) + 1) {
		held := map[string]string{}
		for pool := range r.model.pools {
			if amount := r.model.held(pid, pool); amount > 0 {
				held[pool] = amount.String()
			}
		}
		booked := map[string]string{}
		sums := map[string]*big.Rat{}
		for _, h := range r.sys.live.ledger.Holdings(pid) {
			amount, _ := new(big.Rat).SetString(h.Amount)
			if sums[h.ResourceID] == nil {
				sums[h.ResourceID] = new(big.Rat)
			}
			sums[h.ResourceID].Add(sums[h.ResourceID], amount)
		}
		for pool, sum := range sums {
			booked[pool] = strings.TrimSuffix(sum.FloatString(1), ".0")
		}
		if !maps.Equal(held, booked) {
			return fmt.Errorf("pid %d holds %v, want %v", pid, booked, held)
		}
	}
	return nil
}

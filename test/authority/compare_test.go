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
	"github.com/promptware-os/pwos/test/authority/model"
)

// compare queries the kernel's state, and compares it with the model.
func (r *run) compare() error {
	m := r.model
	pools := slices.Sorted(maps.Keys(m.Pools))
	keys := slices.Sorted(maps.Keys(m.Memory))
	ask := []request{{typ: "Clock.Get", data: `{}`}, {typ: "Process.List", data: `{}`}}
	for _, pool := range pools {
		ask = append(ask, request{typ: "Syscall.Query", data: fmt.Sprintf(`{"resource_id":%q}`, pool)})
	}
	for _, p := range m.Procs {
		ask = append(ask, request{typ: "Capability.Get", data: fmt.Sprintf(`{"pid":%d}`, p.PID)})
	}
	for _, key := range keys {
		ask = append(ask, request{typ: "Memory.Get", data: fmt.Sprintf(`{"key":%q}`, key)})
	}
	told, err := r.conn(model.Operator).burst(ask...)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"tick":%d}`, m.Tick); told[0].String() != want {
		return fmt.Errorf("the clock shows %s, want %s", told[0], want)
	}
	errs := []error{sameProcesses(m, told[1])}
	told = told[2:]
	for i, pool := range pools {
		errs = append(errs, samePool(m, pool, told[i]))
	}
	told = told[len(pools):]
	for i, p := range m.Procs {
		errs = append(errs, sameToken(m, p, told[i]))
	}
	told = told[len(m.Procs):]
	for i, key := range keys {
		if told[i].String() != m.Memory[key] {
			errs = append(errs, fmt.Errorf("key %s holds %s, want %s", key, told[i], m.Memory[key]))
		}
	}
	return errors.Join(errs...)
}

// read decodes the answer of a syscall.
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

func sameProcesses(m *model.Model, a answer) error {
	out, err := read[schema.ProcessListOutput]("Process.List", a)
	if err != nil {
		return err
	}
	if len(out.Processes) != len(m.Procs) {
		return fmt.Errorf("%d processes, want %d", len(out.Processes), len(m.Procs))
	}
	for i, p := range m.Procs {
		d, state := &out.Processes[i], "READY"
		if p.Exit != nil {
			state = "TERMINATED"
		}
		if d.PID != p.PID || d.ParentPID != p.Parent || d.AgentID != p.Agent || d.State != state || d.BirthTick != p.Birth ||
			!samePointer(d.ExitTick, p.Exit) || !sameUnits(d.ResourceQuota, p.Quota) || d.Origin != origin {
			return fmt.Errorf("process %+v, want %+v", d, p)
		}
	}
	return nil
}

func samePool(m *model.Model, pool string, a answer) error {
	out, err := read[schema.ResourceQueryOutput]("Syscall.Query", a)
	if err != nil {
		return err
	}
	if out.Capacity.Float() != m.Pools[pool].Units() || out.Available.Float() != (m.Pools[pool]-m.Total(pool)).Units() {
		return fmt.Errorf("pool %s: %s, want %s of %s held", pool, a, m.Total(pool), m.Pools[pool])
	}
	return nil
}

func sameToken(m *model.Model, p *model.Proc, a answer) error {
	if p.Token == nil {
		if a.code != 404 {
			return fmt.Errorf("pid %d: %s, want no token", p.PID, a)
		}
		return nil
	}
	out, err := read[schema.CapabilityGetOutput]("Capability.Get", a)
	if err != nil {
		return err
	}
	if want := p.Token.Shown(p.PID) + `,"effective":`; !strings.HasPrefix(a.String(), want) {
		return fmt.Errorf("pid %d holds %s, want %s", p.PID, a, want)
	}
	left := &model.Grant{Allowed: out.Effective.AllowedSyscalls}
	for _, typ := range model.Types {
		if left.Names(typ) != m.May(p.PID, typ) {
			return fmt.Errorf("pid %d is shown %s: whether it may call %s is %v", p.PID, a, typ, m.May(p.PID, typ))
		}
	}
	if !samePointer(out.Effective.ExpiresAtTick, m.Last(p.PID)) {
		return fmt.Errorf("pid %d is shown %s, whose last tick is wrong", p.PID, a)
	}
	for pool := range m.Pools {
		if out.Effective.ResourceQuotas[pool] != m.Quota(p.PID, pool).Units() {
			return fmt.Errorf("pid %d is shown %s, want a quota of %s of %s", p.PID, a, m.Quota(p.PID, pool), pool)
		}
		held := m.Held(p.PID, pool)
		if out.Held[pool].Float() != held.Units() || out.HeldBelow[pool].Float() != (m.Used(p.PID, pool)-held).Units() {
			return fmt.Errorf("pid %d holds %v of %s and %v below it, want %s and %s", p.PID, out.Held[pool], pool, out.HeldBelow[pool], held, m.Used(p.PID, pool)-held)
		}
	}
	return nil
}

func samePointer(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func sameUnits(a map[string]float64, b map[string]model.Tenths) bool {
	return maps.EqualFunc(a, b, func(units float64, amount model.Tenths) bool { return units == amount.Units() })
}

// replay rebuilds the state from the journal alone. It checks that ended processes have nothing, that the clock is that of the model, and
// that no step ran for a refused call.
func (r *run) replay() error {
	if err := r.sameHoldings(); err != nil {
		return err
	}
	var tick int64
	refused, steps := map[string]bool{}, map[string]string{}
	replayed, err := r.sys.replay(func(call *kernel.Call) {
		tick = max(tick, call.Tick)
		if call.Syscall == nil {
			return // the entry of a query has only its tick
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
	if tick != r.model.Tick {
		return fmt.Errorf("the journal ends at tick %d, want %d", tick, r.model.Tick)
	}
	if left := process.Orphans(replayed.processes.Alive, replayed.tokens.Holders(), replayed.ledger.Holders(), replayed.mailboxes.Mailboxes()); len(left) > 0 {
		return fmt.Errorf("ended processes have left %v", left)
	}
	return nil
}

// sameHoldings compares the ledger, since no query returns what a process without a token holds.
func (r *run) sameHoldings() error {
	for pid := range int64(len(r.model.Procs) + 1) {
		held := map[string]string{}
		for pool := range r.model.Pools {
			if amount := r.model.Held(pid, pool); amount > 0 {
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

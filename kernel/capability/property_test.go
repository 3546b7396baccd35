package capability_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
)

// may is what the caller may do now.
func (c caller) may() schema.Token {
	e := c.token.Effective(c.tick)
	return schema.Token{PID: c.pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: e.AllowedSyscalls, ResourceQuotas: e.ResourceQuotas, ExpiresAtTick: e.ExpiresAtTick}}
}

// machine runs random calls on a registry beside the model.
type machine struct {
	t     *testing.T
	reg   *capability.Registry
	procs family
	model model
	tick  int64

	published model          // the view's expected tokens
	journal   []*kernel.Call // the successful commands, with their answers
	granted   int            // how many grants of agents succeeded
}

func newMachine(t *testing.T) *machine {
	procs := newFamily()
	return &machine{t: t, procs: procs, reg: capability.New(pools(), procs), model: model{}, published: model{}}
}

// call runs one call and keeps it for the replay. It returns the text of a denial.
func (m *machine) call(r *rapid.T, from caller, typ string, in any) (string, error) {
	raw, err := schema.Marshal(in)
	if err != nil {
		r.Fatal(err)
	}
	data, failed := run(m.t, m.reg, from, typ, string(raw))
	if failed == nil {
		again := request(m.t, from, typ, string(raw))
		again.Token, again.Data = nil, []byte(data)
		m.journal = append(m.journal, again)
	}
	return data, failed
}

func (m *machine) pid(r *rapid.T, name string) int64 { return rapid.Int64Range(1, 5).Draw(r, name) }

func (m *machine) draw(r *rapid.T) schema.Token {
	return schema.Token{PID: m.pid(r, "to"), TokenGrant: schema.TokenGrant{
		AllowedSyscalls: rapid.SliceOfN(rapid.SampledFrom([]string{
			"*", "Memory.*", "Memory.Get", "Memory.Set", "SYS_ALLOC", "Syscall.Alloc", "Syscall.*", "SYS_QUERY", "Capability.Grant",
		}), 1, 3).Draw(r, "allowed"),
		ResourceQuotas: rapid.MapOfN(rapid.SampledFrom(pools()), rapid.SampledFrom([]float64{0, 0.1, 3, 200}), 0, 2).Draw(r, "quotas"),
		ExpiresAtTick:  rapid.Ptr(rapid.Int64Range(0, 6), true).Draw(r, "expires"),
	}}
}

// grant makes a random grant. A caller with a token grants its own rights more often than by chance.
func (m *machine) grant(r *rapid.T) {
	from := m.model.caller(rapid.Int64Range(0, 5).Draw(r, "from"), m.tick)
	if from.pid != kernel.Operator && (from.token == nil || len(from.may().AllowedSyscalls) == 0) {
		return // the shell denies it
	}
	want := m.draw(r)
	if from.token != nil && rapid.Bool().Draw(r, "its own") {
		own := from.may()
		want.AllowedSyscalls, want.ExpiresAtTick, want.ResourceQuotas = own.AllowedSyscalls, own.ExpiresAtTick, own.ResourceQuotas
	}
	in := &schema.GrantInput{PID: want.PID, AllowedSyscalls: want.AllowedSyscalls, ResourceQuotas: want.ResourceQuotas, ExpiresAtTick: want.ExpiresAtTick}
	_, err := m.call(r, from, "Capability.Grant", in)
	m.judge(r, from, want, err)
}

func (m *machine) grantDefault(r *rapid.T) {
	from := m.model.caller(rapid.Int64Range(0, 5).Draw(r, "from"), m.tick)
	if from.pid != kernel.Operator && (from.token == nil || len(from.may().AllowedSyscalls) == 0) {
		return
	}
	pid := m.pid(r, "to")
	d := kernel.DefaultGrant(pid, pools())
	_, err := m.call(r, from, "Capability.GrantDefault", &schema.GrantDefaultInput{PID: pid})
	m.judge(r, from, schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: d.AllowedSyscalls, ResourceQuotas: d.ResourceQuotas}}, err)
}

// judge reports whether a grant must succeed, and updates the model.
func (m *machine) judge(r *rapid.T, from caller, want schema.Token, err error) {
	lives := m.procs[want.PID].State != "TERMINATED"
	may := from.pid == kernel.Operator || below(m.procs, want.PID, from.pid)
	passed := want.ExpiresAtTick != nil && *want.ExpiresAtTick < m.tick
	if err == nil {
		if !lives || !may || passed {
			r.Fatalf("%d granted %v", from.pid, want)
		}
		if from.token != nil {
			m.granted++
			if what := exceeds(from.may(), want); what != "" {
				r.Fatalf("%v granted %v, with %s", from.token, want, what)
			}
		}
		want.GrantedBy = from.pid
		m.model[want.PID] = canonical(want)
		return
	}
	if lives && may && !passed && (from.token == nil || contains(from.may(), want)) {
		r.Fatalf("%d could not grant %v: %v", from.pid, want, err)
	}
}

func (m *machine) endow(r *rapid.T) {
	t := m.draw(r)
	t.PID += 100
	if _, err := m.call(r, operator, "Capability.Endow", &schema.EndowInput{GrantInput: schema.GrantInput{PID: t.PID, AllowedSyscalls: t.AllowedSyscalls, ResourceQuotas: t.ResourceQuotas, ExpiresAtTick: t.ExpiresAtTick}}); err != nil {
		r.Fatal(err)
	}
	m.model[t.PID] = canonical(t)
}

func (m *machine) strip(r *rapid.T) {
	pids := rapid.SliceOf(rapid.Int64Range(1, 105)).Draw(r, "pids")
	if _, err := m.call(r, operator, "Capability.Strip", &schema.StripInput{PIDs: pids}); err != nil {
		r.Fatal(err)
	}
	for _, pid := range pids {
		delete(m.model, pid)
	}
}

func (m *machine) revoke(r *rapid.T) {
	from := m.model.caller(rapid.Int64Range(0, 5).Draw(r, "from"), m.tick)
	pid := m.pid(r, "of")
	got, err := m.call(r, from, "Capability.Revoke", &schema.RevokeInput{PID: pid})
	_, held := m.model[pid]
	if may := from.pid == kernel.Operator || below(m.procs, pid, from.pid); may != (err == nil) {
		r.Fatalf("%d revoked %d: %v", from.pid, pid, err)
	} else if may {
		if want := fmt.Sprintf(`{"pid":%d,"revoked":%v}`, pid, held); got != want {
			r.Fatalf("got %s, want %s", got, want)
		}
		delete(m.model, pid)
	}
}

func (m *machine) revokeExpired(r *rapid.T) {
	from := m.model.caller(rapid.Int64Range(0, 5).Draw(r, "from"), m.tick)
	got, err := m.call(r, from, "Capability.RevokeExpired", &schema.RevokeExpiredInput{})
	if want := m.model.expired(m.tick); err != nil || got != want {
		r.Fatalf("got %s, %v, want %s", got, err, want)
	}
}

func (m *machine) publish(*rapid.T) {
	m.reg.Publish()
	m.published = model{}
	for pid, t := range m.model {
		m.published[pid] = t
	}
}

// check compares the view with what was published.
func (m *machine) check(r *rapid.T) {
	for pid := range int64(107) {
		want, ok := m.published[pid]
		got := m.reg.Token(pid)
		if (got != nil) != ok || (ok && !reflect.DeepEqual(got.Granted, want)) {
			r.Fatalf("the view shows %v for %d, want %v", got, pid, want)
		}
	}
}

// TestModel: no holder has more than it was granted, the view has the published tokens, and a replay and a restored
// snapshot give the same state, whatever the configuration and the process table are then.
func TestModel(t *testing.T) {
	t.Parallel()
	granted := 0
	rapid.Check(t, func(r *rapid.T) {
		m := newMachine(t)
		steps := []func(*rapid.T){m.grant, m.grant, m.grant, m.grantDefault, m.endow, m.strip, m.revoke, m.revokeExpired, m.publish}
		for range rapid.IntRange(1, 50).Draw(r, "calls") {
			m.tick += rapid.Int64Range(0, 1).Draw(r, "ticks") * rapid.Int64Range(0, 1).Draw(r, "ticks")
			rapid.SampledFrom(steps).Draw(r, "step")(r)
			m.check(r)
		}
		granted += m.granted
		state := domaintest.Snapshot(t, m.reg)

		replayed := capability.New(nil, nil)
		for _, call := range m.journal {
			domaintest.Apply(replayed, call, call.Data)
		}
		restored := capability.New(nil, nil)
		if err := m.reg.Snapshot()(restored.Restore); err != nil {
			r.Fatal(err)
		}
		for _, other := range []*capability.Registry{replayed, restored} {
			if !bytes.Equal(state, domaintest.Snapshot(t, other)) {
				r.Fatalf("state %s, rebuilt %s", state, domaintest.Snapshot(t, other))
			}
			m.reg = other
			m.publish(r)
			m.check(r)
		}
	})
	if granted == 0 {
		t.Error("no grant of an agent succeeded: the test shows nothing")
	}
}

package self_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// shell is a domain with its journal.
type shell struct {
	t       *testing.T
	domain  *self.Domain
	journal domaintest.Journal
	now     int64
}

func (s *shell) run(pid int64, origin, typ, data string) *fault.Fault {
	s.t.Helper()
	call := domaintest.Request(s.t, typ, data)
	call.PID, call.Origin, call.Time = pid, origin, s.now
	result, err := domaintest.Decide(s.t, s.domain, call)
	if err != nil {
		return domaintest.Shown(s.t, err)
	}
	s.journal.Apply(s.domain, call, result.Data)
	s.domain.Publish()
	return nil
}

func (s *shell) register(pid int64, origin, name string) *fault.Fault {
	s.t.Helper()
	return s.run(pid, origin, "Syscall.Register", fmt.Sprintf(`{"name":%q,"kind":"command","input":{"type":"object"},"provider":"connection"}`, name))
}

// TestRegistry: a registration belongs to an origin and an owner, and a replay and a snapshot restore it.
func TestRegistry(t *testing.T) {
	t.Parallel()
	const home, away = "https://home.example/", "https://away.example/"
	s := &shell{t: t, domain: self.New(nil), now: 1_000_000}
	want := func(err *fault.Fault, id fault.ID) {
		t.Helper()
		if id == "" && err != nil || id != "" && (err == nil || err.ID != id) {
			t.Errorf("got %v, want %q", err, id)
		}
	}
	view := s.domain.Registry()
	want(s.register(7, home, "Sum.Add"), "")
	want(s.register(7, home, "Sum.Add"), "") // again
	want(s.register(8, home, "Sum.Add"), fault.CapabilityNotYours)
	want(s.register(8, away, "Sum.Add"), "")
	want(s.register(kernel.Operator, home, "Sum.Add"), "") // for the owner
	want(s.run(kernel.Operator, home, "Syscall.Register", `{"name":"Sum.Tool","type":"query","inputSchema":{},"path":"os/tools/sum"}`), "")
	want(s.run(7, home, "Syscall.Register", `{"name":"Sum.Mine","type":"query","inputSchema":{},"path":"os/tools/sum"}`), fault.CapabilityOperatorOnly)
	for origin, owner := range map[string]int64{home: 7, away: 8} {
		if r := view.Registered(origin, "Sum.Add"); r == nil || r.Owner != owner || r.Kind != "command" || string(r.Input) != `{"type":"object"}` || string(r.Output) != `{}` {
			t.Errorf("%s: %+v", origin, r)
		}
	}
	want(s.run(8, home, "Syscall.Invoke", `{"name":"Sum.Add","kind":"query","data":1}`), fault.WireSchema)
	want(s.run(8, home, "Syscall.Invoke", `{"name":"Sum.None","kind":"query","data":1}`), fault.WireUnknownSyscall)
	want(s.run(8, home, "Syscall.Unregister", `{"name":"Sum.Add"}`), fault.CapabilityNotYours)
	want(s.run(8, home, "Syscall.Unregister", `{"name":"Sum.None"}`), fault.SyscallNotFound)
	s.journal.Check(t, s.domain, self.New(nil), self.New(nil))
	want(s.run(7, home, "Syscall.Unregister", `{"name":"Sum.Add"}`), "")
	if r := view.Registered(home, "Sum.Add"); r != nil {
		t.Errorf("the syscall is still registered: %+v", r)
	}
	want(s.register(8, home, "Sum.Add"), "") // it had no owner

	for i := range 8 {
		want(s.register(7, home, fmt.Sprintf("Many.N%d", i)), "")
	}
	want(s.register(7, home, "Many.More"), fault.SyscallTooOften)
	want(s.register(8, home, "Many.More"), "")
	s.now += 59_999
	want(s.register(7, home, "Many.Late"), fault.SyscallTooOften)
	s.now++
	want(s.register(7, home, "Many.Late"), "")
	s.journal.Check(t, s.domain, self.New(nil), self.New(nil))
	fresh := self.New(nil)
	domaintest.Restore(t, s.domain, fresh)
	fresh.Publish()
	if r := fresh.Registry().Registered(home, "Sum.Tool"); r == nil || r.Path == nil || *r.Path != "os/tools/sum" {
		t.Errorf("restored: %+v", r)
	}

	for i := range self.MaxRegistered {
		call := domaintest.Request(t, "Syscall.Register", fmt.Sprintf(`{"name":"Op.N%d","kind":"command","input":{},"provider":"connection"}`, i))
		call.Origin = away
		_, err := s.domain.Decide(call)
		if full := i == self.MaxRegistered-1; (err != nil) != full || full && fault.Of(err).ID != fault.SyscallTooMany {
			t.Fatalf("after %d: %v", i, err)
		}
		s.domain.Apply(call)
	}
}

// TestRestoreRefuses: an invalid chunk is an error.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	d := self.New(nil)
	if err := d.Restore([]byte(`[{"booted":{"instance":"i","epoch":1,"host_key":"k"}}]`)); err != nil || d.Booted().Instance != "i" {
		t.Errorf("%v, %+v", err, d.Booted())
	}
	for _, chunk := range []string{``, `{`, `[{"syscall":`, `[{"syscall":{}}]`, `[{"strange":1}]`} {
		if err := self.New(nil).Restore([]byte(chunk)); err == nil {
			t.Errorf("%s is accepted", chunk)
		}
	}
	if schema.SyscallInvoke.Row().Internal != true {
		t.Error("clients can name Syscall.Invoke")
	}
}

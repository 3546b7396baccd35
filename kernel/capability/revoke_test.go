package capability_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/schema/fault"
)

// endow gives each PID an empty token, as the kernel does; expires is empty or a last tick.
func endow(t testing.TB, r *capability.Registry, expires string, pids ...int64) {
	t.Helper()
	for _, pid := range pids {
		data := fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[],"resource_quotas":{}`, pid)
		if expires != "" {
			data += `,"expires_at_tick":` + expires
		}
		must(t, r, operator, "Capability.Endow", data+"}", shown(0, data+"}"))
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		from caller
		pid  int64
		want bool
	}{
		{"held", operator, 2, true},
		{"not held", operator, 4, false},
		{"not held by who has ended", operator, 5, false},
		{"left behind by a process that never existed", operator, 99, true},
		{"a child's", agent(1, "*"), 2, true},
		{"a grandchild's that has none", agent(1, "*"), 3, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			endow(t, r, "", 1, 2, 99)
			data := fmt.Sprintf(`{"pid":%d}`, tt.pid)
			must(t, r, tt.from, "Capability.Revoke", data, fmt.Sprintf(`{"pid":%d,"revoked":%v}`, tt.pid, tt.want))
			left := 3
			if tt.want {
				left = 2
				if tt.pid != 99 { // which is unknown without its token
					must(t, r, tt.from, "Capability.Revoke", data, fmt.Sprintf(`{"pid":%d,"revoked":false}`, tt.pid))
				}
			}
			if got := len(r.Holders()); got != left {
				t.Errorf("%d tokens left, want %d", got, left)
			}
		})
	}
}

func TestRevokeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		from    caller
		pid     int64
		class   fault.Kind
		message string
	}{
		{"never existed", operator, 6, fault.NotFound, "no process has pid 6: Process.List lists the processes"},
		{"its own", agent(1, "*"), 1, fault.Forbidden, "pid 1 may not revoke the token of pid 1: it is none of its descendants; the operator may"},
		{"its parent's", agent(2, "*"), 1, fault.Forbidden, "pid 2 may not revoke the token of pid 1: it is none of its descendants; the operator may"},
		{"a stranger's", agent(1, "*"), 4, fault.Forbidden, "pid 1 may not revoke the token of pid 4: it is none of its descendants; the operator may"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			endow(t, r, "", 1, 2, 4)
			refused(t, r, tt.from, "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, tt.pid), tt.class, tt.message)
		})
	}
}

func TestRevokeExpired(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	endow(t, r, "", 1)
	endow(t, r, "0", 20)
	endow(t, r, "5", 3, 2)
	endow(t, r, "6", 4)
	at := func(tick int64) caller { return caller{tick: tick} }
	must(t, r, at(0), "Capability.RevokeExpired", `{}`, `{"revoked":[]}`)
	must(t, r, at(1), "Capability.RevokeExpired", `{}`, `{"revoked":[20]}`)
	must(t, r, at(5), "Capability.RevokeExpired", `null`, `{"revoked":[]}`)
	must(t, r, at(6), "Capability.RevokeExpired", `{}`, `{"revoked":[2,3]}`)
	must(t, r, at(1<<50), "Capability.RevokeExpired", `{}`, `{"revoked":[4]}`)
	must(t, r, at(1<<50), "Capability.RevokeExpired", `{}`, `{"revoked":[]}`)
	if got := fmt.Sprint(r.Holders()); got != "[1]" {
		t.Errorf("processes with a token: %s, want only 1, whose token does not expire", got)
	}
}

// TestRevokeExpiredFitsALine: further calls revoke the tokens that did not fit the first answer.
func TestRevokeExpiredFitsALine(t *testing.T) {
	t.Parallel()
	const many = 4000
	r := newRegistry()
	for pid := range int64(many) {
		call := request(t, operator, "Capability.Endow", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[],"expires_at_tick":1}`, pid+1))
		result, err := r.Decide(call)
		testkit.Must(t, err)
		call.Data = result.Data
		r.Apply(call)
	}
	var revoked []string
	for calls := 1; ; calls++ {
		got, err := run(t, r, caller{tick: 2}, "Capability.RevokeExpired", `{}`)
		testkit.Must(t, err)
		if len(got) > kernel.MaxData {
			t.Fatalf("an answer of %d bytes", len(got))
		}
		list := strings.TrimSuffix(strings.TrimPrefix(got, `{"revoked":[`), `]}`)
		if list == "" {
			if calls != 3 {
				t.Errorf("%d calls, want 3, the last with an empty list", calls)
			}
			break
		}
		revoked = append(revoked, strings.Split(list, ",")...)
	}
	if len(revoked) != many || revoked[0] != "1" || revoked[many-1] != fmt.Sprint(many) || len(r.Holders()) != 0 {
		t.Errorf("%d revoked, %d left", len(revoked), len(r.Holders()))
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	endow(t, r, "", 1, 2, 3, 99)
	must(t, r, operator, "Capability.Strip", `{"pids":[99,3,7,1]}`, `{"success":true}`)
	if got := fmt.Sprint(r.Holders()); got != "[2]" {
		t.Errorf("processes with a token: %s, want only 2", got)
	}
	must(t, r, operator, "Capability.Strip", `{"pids":[]}`, `{"success":true}`)
	must(t, r, operator, "Capability.Strip", `{"pids":[99,3]}`, `{"success":true}`)
}

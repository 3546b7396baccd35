package capability_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// family is a process table: 1 spawned 2, which spawned 3; 4 has no relatives, 5 was 1's child and has ended.
type family map[int64]*schema.Descriptor

func newFamily() family {
	f := family{}
	for pid, parent := range map[int64]int64{1: 0, 2: 1, 3: 2, 4: 0, 5: 1} {
		f[pid] = &schema.Descriptor{PID: pid, AgentID: fmt.Sprint("agent-", pid), ParentPID: parent, State: "READY", Priority: "NORMAL"}
	}
	f[5].State = "TERMINATED"
	return f
}

func (f family) Process(pid int64) *schema.Descriptor { return f[pid] }

func pools() []string { return []string{"gpu", "cpu"} }

func newRegistry() *capability.Registry { return capability.New(pools(), newFamily()) }

// caller is the process of a call.
type caller struct {
	pid   int64
	token *kernel.Token
	tick  int64
}

var operator = caller{}

// agent is a caller with a token of these patterns, and quotas of 10 of each pool.
func agent(pid int64, allowed ...string) caller {
	return caller{pid: pid, token: &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{
		AllowedSyscalls: allowed, ResourceQuotas: map[string]float64{"cpu": 10, "gpu": 10},
	}}}}
}

// shown is a token in an answer, with its granter, and without an expiry.
func shown(by int64, token string) string {
	pid, rest, _ := strings.Cut(token, ",")
	if !strings.Contains(rest, "expires_at_tick") {
		rest = strings.TrimSuffix(rest, "}") + `,"expires_at_tick":null}`
	}
	return fmt.Sprintf(`%s,"granted_by":%d,%s`, pid, by, rest)
}

func run(t testing.TB, r *capability.Registry, from caller, typ, data string) (string, error) {
	t.Helper()
	return domaintest.Run(t, r, request(t, from, typ, data))
}

func request(t testing.TB, from caller, typ, data string) *kernel.Call {
	t.Helper()
	call := domaintest.Request(t, typ, data)
	call.PID, call.Token, call.Tick = from.pid, from.token, from.tick
	return call
}

// must runs a call that must succeed with this answer.
func must(t testing.TB, r *capability.Registry, from caller, typ, data, want string) {
	t.Helper()
	if got, err := run(t, r, from, typ, data); err != nil || got != want {
		t.Fatalf("%s %s as %d: got %s, %v, want %s", typ, data, from.pid, got, err, want)
	}
}

// refused runs a call that must fail with this error and change nothing.
func refused(t testing.TB, r *capability.Registry, from caller, typ, data string, class fault.Kind, message string) {
	t.Helper()
	before := domaintest.Snapshot(t, r)
	got, err := run(t, r, from, typ, data)
	shown, ok := errors.AsType[*fault.Fault](err)
	if !ok || shown.Kind != class || shown.Text() != message {
		t.Errorf("%s %s as %d: got %s, %v, want class %d: %s", typ, data, from.pid, got, err, class, message)
	}
	if !bytes.Equal(before, domaintest.Snapshot(t, r)) {
		t.Errorf("%s %s as %d: refused, yet the state changed", typ, data, from.pid)
	}
}

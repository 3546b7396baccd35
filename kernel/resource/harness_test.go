package resource_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// family is a process table: 1 spawned 2, which spawned 3; 4 has no relatives.
type family struct{}

func (family) Process(pid int64) *schema.Descriptor {
	parents := map[int64]int64{1: 0, 2: 1, 3: 2, 4: 0}
	parent, ok := parents[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, ParentPID: parent, State: "READY"}
}

// tokens is a constant view of capabilities.
type tokens map[int64]*kernel.Token

func (t tokens) Token(pid int64) *kernel.Token {
	held := t[pid]
	if held != nil && held.Granted.GrantedBy != kernel.Operator {
		held.Granter = t.Token(held.Granted.GrantedBy)
	}
	return held
}

// grant gives pid a token for everything, with these quotas.
func (t tokens) grant(pid int64, quotas map[string]float64) *kernel.Token {
	t[pid] = &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{"*"}, ResourceQuotas: quotas}}}
	return t[pid]
}

// bench is a ledger with its views.
type bench struct {
	t      testing.TB
	ledger *resource.Ledger
	tokens tokens
	tick   int64
}

// newBench has a gpu pool of 8 and a cpu pool of 1, and grants 1, 2 and 3 up to 5 of gpu and 1 of cpu.
func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, tokens: tokens{}}
	for _, pid := range []int64{1, 2, 3} {
		b.tokens.grant(pid, map[string]float64{"gpu": 5, "cpu": 1})
	}
	b.ledger = newLedger(t, map[string]float64{"gpu": 8, "cpu": 1}, b.tokens)
	return b
}

func newLedger(t testing.TB, pools map[string]float64, view kernel.Tokens) *resource.Ledger {
	t.Helper()
	l, err := resource.New(pools, view, family{})
	testkit.Must(t, err)
	return l
}

// run handles a message as the shell does: it decodes, authorizes, decides and applies.
func (b *bench) run(pid int64, typ, data string) (string, error) {
	b.t.Helper()
	call := request(b.t, pid, typ, data)
	call.Token, call.Tick = b.tokens.Token(pid), b.tick
	if !call.Syscall.Internal {
		if err := kernel.Authorize(nil, pid, call.Token, call.Syscall, b.tick); err != nil {
			return "", err
		}
	}
	return domaintest.Run(b.t, b.ledger, call)
}

func request(t testing.TB, pid int64, typ, data string) *kernel.Call {
	t.Helper()
	call := domaintest.Request(t, typ, data)
	call.PID = pid
	return call
}

// must runs a call that must succeed with this answer.
func (b *bench) must(pid int64, typ, data, want string) {
	b.t.Helper()
	if got, err := b.run(pid, typ, data); err != nil || got != want {
		b.t.Fatalf("%s %s as %d: got %s, %v, want %s", typ, data, pid, got, err, want)
	}
}

// alloc makes an allocation that must succeed.
func (b *bench) alloc(pid int64, of, amount string) {
	b.t.Helper()
	if _, err := b.run(pid, "Syscall.Alloc", `{"resource_id":"`+of+`","amount":`+amount+`}`); err != nil {
		b.t.Fatal(err)
	}
}

// refused runs a call that must fail with this error and change nothing.
func (b *bench) refused(pid int64, typ, data string, class fault.Kind, message string) {
	b.t.Helper()
	before := domaintest.Snapshot(b.t, b.ledger)
	got, err := b.run(pid, typ, data)
	shown, ok := errors.AsType[*fault.Fault](err)
	if !ok || shown.Kind != class || shown.Text() != message {
		b.t.Errorf("%s %s as %d: got %s, %v, want class %d: %s", typ, data, pid, got, err, class, message)
	}
	if !bytes.Equal(before, domaintest.Snapshot(b.t, b.ledger)) {
		b.t.Errorf("%s %s as %d: refused, yet the state changed", typ, data, pid)
	}
}

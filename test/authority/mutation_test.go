package authority_test

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// tries is the most sequences that are run for a mutation. Most mutations are found in the first 20 sequences, the rarest in
// about 200.
const tries = 2000

// TestMutations breaks one rule at a time, and checks that the test of a sequence finds it, with a sequence that the correct kernel passes.
func TestMutations(t *testing.T) {
	t.Parallel()
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			drawn, broken := sequences(), house()
			broken.breach = m.breach
			for i := range tries {
				steps := drawn.Example(i)
				if err := sequence(broken, steps, &tally{}); err == nil {
					continue
				}
				if err := sequence(house(), steps, &tally{}); err != nil {
					t.Fatalf("the kernel without a mutation: %v", err)
				}
				t.Logf("found in sequence %d", i+1)
				return
			}
			t.Errorf("%d sequences have not found it", tries)
		})
	}
}

type mutation struct {
	name   string
	breach breach
}

func mutations() []mutation {
	return []mutation{
		{"a revoked token holds", breach{tokens: func(v kernel.Tokens) kernel.Tokens {
			last := map[int64]*kernel.Token{} // a sequence makes one call at a time
			return viewOf(func(pid int64) *kernel.Token {
				if t := v.Token(pid); t != nil {
					last[pid] = t
				}
				return last[pid]
			})
		}}},
		{"an expired token holds", changed(func(t *schema.Token) { t.ExpiresAtTick = nil })},
		{"a token expires a tick late", changed(func(t *schema.Token) {
			if t.ExpiresAtTick != nil {
				later := *t.ExpiresAtTick + 1
				t.ExpiresAtTick = &later
			}
		})},
		{"a token allows everything", changed(func(t *schema.Token) { t.AllowedSyscalls = []string{"*"} })},
		{"a quota is a tenth too large", changed(func(t *schema.Token) {
			t.ResourceQuotas = maps.Clone(t.ResourceQuotas)
			for resource := range t.ResourceQuotas {
				t.ResourceQuotas[resource] += 0.1
			}
		})},
		{"an agent's grant is not cut down", breach{tokens: func(v kernel.Tokens) kernel.Tokens {
			return viewOf(func(pid int64) *kernel.Token { return uncut(v.Token(pid)) })
		}}},
		{"what was granted outlives the granter's token", breach{tokens: func(v kernel.Tokens) kernel.Tokens {
			last := map[int64]*kernel.Token{}
			return viewOf(func(pid int64) *kernel.Token {
				t := v.Token(pid)
				if t == nil || t.Granted.GrantedBy == kernel.Operator {
					return t
				}
				if t.Granter != nil {
					last[pid] = t
				}
				if was := last[pid]; was != nil {
					t = &kernel.Token{Granted: t.Granted, Granter: was.Granter}
				}
				return t
			})
		}}},
		{"a granter's quota is not looked at", in(schema.Resource, decides(func(call *kernel.Call) {
			if call.Syscall.Type == "Syscall.Alloc" {
				call.Token = uncut(call.Token)
			}
		}))},
		{"what is held below is forgotten", in(schema.Resource, func(d kernel.Domain) kernel.Domain {
			return &mutant{Domain: d, apply: func(call *kernel.Call) {
				other := *call
				if before, _, found := bytes.Cut(call.Data, []byte(`,"counted_against"`)); found {
					other.Data = append(bytes.Clone(before), '}')
				}
				d.Apply(&other)
			}}
		})},
		{"what is added replaces", in(schema.Capability, decides(func(call *kernel.Call) {
			if in, ok := call.Input.(*schema.GrantInput); ok && in.Adds() {
				other := *in
				other.Mode, call.Input = nil, &other
			}
		}))},
		{"what the operator adds to becomes its own", in(schema.Capability, func(d kernel.Domain) kernel.Domain {
			return &mutant{Domain: d, apply: func(call *kernel.Call) {
				other := *call
				if before, _, found := bytes.Cut(call.Data, []byte(`,"grants"`)); found && call.PID == kernel.Operator {
					at := bytes.Index(before, []byte(`,"allowed_syscalls"`)) // after the granter
					other.Data = fmt.Appendf(nil, `{"pid":%d,"granted_by":0%s}`, call.Input.(*schema.GrantInput).PID, before[at:])
				}
				d.Apply(&other)
			}}
		})},
		{"an answer to the operator goes to everybody", in(schema.Ipc, decides(func(call *kernel.Call) {
			if in, ok := call.Input.(*schema.SendMsgInput); ok && in.ReceiverPID == kernel.Operator {
				asOperator(call)
			}
		}))},
		{"a child may be given anything", in(schema.Process, decides(unlimited))},
		{"anything may be granted", in(schema.Capability, decides(unlimited))},
		{"anybody may be granted to", in(schema.Capability, decides(asOperator))},
		{"anybody may be ended", in(schema.Process, decides(func(call *kernel.Call) {
			if _, ok := call.Input.(*schema.TerminateInput); ok {
				asOperator(call)
			}
		}))},
		{"a quota is not looked at", in(schema.Resource, decides(func(call *kernel.Call) {
			if call.Syscall.Type == "Syscall.Alloc" {
				unlimited(call)
			}
		}))},
		{"a refused allocation is booked", in(schema.Resource, func(d kernel.Domain) kernel.Domain {
			return &mutant{Domain: d, decide: func(call *kernel.Call) (kernel.Result, error) {
				result, err := d.Decide(call)
				if err != nil && call.Syscall.Type == "Syscall.Alloc" {
					d.Apply(call)
				}
				return result, err
			}}
		})},
		{"the dead keep what they hold", in(schema.Resource, skips("Resource.Free"))},
		{"the dead keep their tokens", in(schema.Capability, skips("Capability.Strip"))},
		{"the dead keep their mailboxes", in(schema.Ipc, skips("Ipc.Close"))},
		{"a state is not what the journal says", in(schema.Delta, func(d kernel.Domain) kernel.Domain {
			return &mutant{Domain: d, apply: func(call *kernel.Call) {
				late := *call
				late.Tick++ // no answer of a sequence shows it
				d.Apply(&late)
			}}
		})},
		{"a key is not looked at", breach{frame: func(frames []byte) []byte {
			return bytes.ReplaceAll(frames, []byte(`"idempotencyKey"`), []byte(`"nothingAtAll"`))
		}}},
	}
}

// viewOf is a function that implements kernel.Tokens.
type viewOf func(pid int64) *kernel.Token

func (f viewOf) Token(pid int64) *kernel.Token { return f(pid) }

// changed returns a breach that changes every token.
func changed(change func(*schema.Token)) breach {
	return breach{tokens: func(v kernel.Tokens) kernel.Tokens {
		return viewOf(func(pid int64) *kernel.Token {
			t := v.Token(pid)
			if t == nil {
				return nil
			}
			other := *t
			change(&other.Granted)
			return &other
		})
	}}
}

// mutant is a domain whose functions that are set replace its own.
type mutant struct {
	kernel.Domain
	decide func(*kernel.Call) (kernel.Result, error)
	apply  func(*kernel.Call)
	shown  func() // called before Publish
}

func (m *mutant) Decide(call *kernel.Call) (kernel.Result, error) {
	if m.decide != nil {
		return m.decide(call)
	}
	return m.Domain.Decide(call)
}

func (m *mutant) Apply(call *kernel.Call) {
	if m.apply != nil {
		m.apply(call)
		return
	}
	m.Domain.Apply(call)
}

func (m *mutant) Publish() {
	if m.shown != nil {
		m.shown()
	}
	if p, ok := m.Domain.(kernel.Publisher); ok {
		p.Publish()
	}
}

// in returns a breach of one domain.
func in(name schema.Domain, mutate func(kernel.Domain) kernel.Domain) breach {
	return breach{domain: func(at schema.Domain, d kernel.Domain) kernel.Domain {
		if at == name {
			return mutate(d)
		}
		return d
	}}
}

// decides makes a domain decide a changed copy of each call.
func decides(change func(*kernel.Call)) func(kernel.Domain) kernel.Domain {
	return func(d kernel.Domain) kernel.Domain {
		return &mutant{Domain: d, decide: func(call *kernel.Call) (kernel.Result, error) {
			other := *call
			change(&other)
			return d.Decide(&other)
		}}
	}
}

// skips makes a domain not apply a type of command.
func skips(typ string) func(kernel.Domain) kernel.Domain {
	return func(d kernel.Domain) kernel.Domain {
		return &mutant{Domain: d, apply: func(call *kernel.Call) {
			if call.Syscall.Type != typ {
				d.Apply(call)
			}
		}}
	}
}

// uncut returns a token as if the operator had granted all of it.
func uncut(t *kernel.Token) *kernel.Token {
	if t == nil {
		return nil
	}
	other := &kernel.Token{Granted: t.Granted}
	other.Granted.GrantedBy = kernel.Operator
	other.Granted.Grants = nil
	return other
}

// unlimited replaces the token of a call by one that allows everything.
func unlimited(call *kernel.Call) {
	call.Token = &kernel.Token{Granted: schema.Token{
		PID: call.PID, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{"*"}, ResourceQuotas: map[string]float64{"gpu": 1000, "ram": 1000}},
	}}
}

func asOperator(call *kernel.Call) { call.PID = kernel.Operator }

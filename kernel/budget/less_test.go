package budget_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestLess: after a smaller grant an agent has no more than that, even when its children's and requests' parts
// return. The excess returns to its source at the agent's end, or with the next grant.
func TestLess(t *testing.T) {
	t.Parallel()
	s := newShell(t, 1)
	s.spawn(kernel.Operator, &schema.BudgetGrant{Calls: new(int64(1000)), Tokens: new(int64(1000))})
	s.spawn(1, &schema.BudgetGrant{Calls: new(int64(900)), Tokens: new(int64(900))})
	s.spawn(2, &schema.BudgetGrant{Calls: new(int64(800)), Tokens: new(int64(100))})
	for _, call := range s.flying {
		s.record(call)
	}
	s.flying = nil
	request := &kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.Row(), Input: &schema.NetRequestInput{MaxTokens: 700}}, Decision: kernel.Decision{PID: 2}}
	if !s.admit(request) {
		t.Fatal(request.Err)
	}
	s.record(request)
	less := &kernel.Call{
		Request: kernel.Request{Syscall: schema.CapabilityGrant.Row(), Input: &schema.GrantInput{
			PID: 2, Budget: &schema.BudgetGrant{Calls: new(int64(100)), Tokens: new(int64(50))},
		}},
		Decision: kernel.Decision{PID: kernel.Operator},
	}
	if !s.admit(less) {
		t.Fatal(less.Err)
	}
	s.record(less)
	s.check()
	if b := s.show()[2]; b.Calls.Left != "0" || b.Calls.Below != "800" || b.Tokens.Left != "0" {
		t.Errorf("granted: %+v, %+v", *b.Calls, *b.Tokens)
	}
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityStrip.Syscall, Input: &schema.StripInput{PIDs: []int64{3}}}})
	delete(s.parents, 3)
	outcome := schema.Outcome{Data: []byte(`{"upstream":"m","method":"POST","path":"/","status":200,"sent":0,"received":0,"usage":{"input_tokens":3,"output_tokens":4},"ended":"the answer was complete"}`)}
	end := &schema.EffectEnd{Intent: int64(request.Proof.Seq), Type: "Net.Request", Ran: true, Outcome: schema.AppendOutcome(nil, schema.KindCommand, &outcome)}
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.End.Syscall, Input: end}})
	s.check()
	s.restart()
	all := s.show()
	if b := all[2]; b.Calls.Left != "99" || b.Calls.Withheld != "701" || b.Tokens.Left != "43" || b.Tokens.Withheld != "750" {
		t.Errorf("the agent has %+v, %+v", *b.Calls, *b.Tokens)
	}
	again := &kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityGrant.Row(), Input: less.Input}, Decision: kernel.Decision{PID: kernel.Operator}}
	if !s.admit(again) {
		t.Fatal(again.Err)
	}
	s.record(again)
	s.check()
	all = s.show()
	if b := all[2]; b.Calls.Given != "100" || b.Calls.Left != "99" || b.Calls.Withheld != "" {
		t.Errorf("granted again: %+v", *b.Calls)
	}
	if b := all[1]; b.Calls.Left != "899" || b.Tokens.Left != "950" {
		t.Errorf("the parent has %+v, %+v", *b.Calls, *b.Tokens)
	}
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityStrip.Syscall, Input: &schema.StripInput{PIDs: []int64{2}}}})
	delete(s.parents, 2)
	s.check()
	if b := s.show()[1]; b.Calls.Left != "998" || b.Tokens.Left != "993" {
		t.Errorf("at the end the parent has %+v, %+v", *b.Calls, *b.Tokens)
	}
}

// TestTooMuchBelow: a budget whose sum with those below it overflows is refused.
func TestTooMuchBelow(t *testing.T) {
	t.Parallel()
	const most, children = 1<<53 - 1, 1100
	s := newShell(t, 1)
	s.spawn(kernel.Operator, nil)
	for range children {
		in := &schema.EndowInput{GrantInput: schema.GrantInput{PID: s.next, Budget: &schema.BudgetGrant{Calls: new(int64(most))}}, GrantedBy: new(int64(1))}
		s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityEndow.Syscall, Input: in}})
		s.next++
	}
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityGrant.Row(), Input: &schema.GrantInput{PID: 1, Budget: &schema.BudgetGrant{Calls: new(int64(10))}}}, Decision: kernel.Decision{PID: kernel.Operator}}
	if v := s.ledger.Stage(call); v.Fault == nil || v.Fault.Code() != 422 {
		t.Errorf("answered %+v", v.Fault)
	}
}

// TestExhaustedSays: an agent whose request to a model may cost more than is left hears that it can ask for a shorter answer.
func TestExhaustedSays(t *testing.T) {
	t.Parallel()
	s := newShell(t, 1)
	s.spawn(kernel.Operator, &schema.BudgetGrant{USD: new(1.0)})
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.Row(), Input: &schema.NetRequestInput{MaxTokens: 128_000, MaxMicroUSD: 2_560_000}}, Decision: kernel.Decision{PID: 1}}
	if s.admit(call) || !strings.Contains(call.Err.Text(), "answers of fewer than 128000 tokens") {
		t.Errorf("told %v", call.Err)
	}
}

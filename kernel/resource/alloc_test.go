package resource_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestAllocAndRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`, `{"resource_id":"gpu","amount":2,"reserved":2}`)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":2.5}`, `{"resource_id":"gpu","amount":2.5,"reserved":4.5}`)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":-0.0}`, `{"resource_id":"gpu","amount":0,"reserved":4.5}`)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":5e-1}`, `{"resource_id":"gpu","amount":0.5,"reserved":5}`)
	b.must(2, "Syscall.Alloc", `{"resource_id":"gpu","amount":3}`, `{"resource_id":"gpu","amount":3,"reserved":3}`)
	b.must(1, "Syscall.Release", `{"resource_id":"gpu","amount":4.75}`, `{"resource_id":"gpu","amount":4.75}`)
	b.must(1, "Syscall.Release", `{"resource_id":"gpu","amount":0}`, `{"resource_id":"gpu","amount":0}`)
	b.must(3, "Syscall.Release", `{"resource_id":"cpu","amount":0}`, `{"resource_id":"cpu","amount":0}`)
	const left = `[{"pid":1,"resource_id":"gpu","amount":"0.25"},{"pid":2,"resource_id":"gpu","amount":"3"}]`
	if got := string(domaintest.Snapshot(t, b.ledger)); got != left {
		t.Errorf("left with %s, want %s", got, left)
	}
}

func TestAllocRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		pid        int64
		of, amount string
		class      fault.Kind
		message    string
	}{
		{"no such pool", 1, "gpux", "1", fault.NotFound, `no resource is named "gpux": there are cpu, gpu`},
		{
			"beyond the quota", 1, "gpu", "2.5", fault.QuotaExceeded,
			`quota of gpu exceeded: pid 1 may hold 5, holds 3 and asked for 2.5: release some, or allow more with "pwos cap grant 1 --add --quota gpu=5.5"`,
		},
		{
			"just beyond the quota", 1, "gpu", "2.0000000000000004", fault.QuotaExceeded,
			`quota of gpu exceeded: pid 1 may hold 5, holds 3 and asked for 2.0000000000000004: release some, or allow more with "pwos cap grant 1 --add --quota gpu=5.0000000000000004"`,
		},
		{
			"no quota", 4, "gpu", "1", fault.QuotaExceeded,
			`quota of gpu exceeded: pid 4 may hold 0, holds 0 and asked for 1: release some, or allow more with "pwos cap grant 4 --add --quota gpu=1"`,
		},
		{
			"beyond quota and capacity", 2, "gpu", "9", fault.QuotaExceeded,
			`quota of gpu exceeded: pid 2 may hold 5, holds 3 and asked for 9: release some, or allow more with "pwos cap grant 2 --add --quota gpu=12"`,
		},
		{
			"beyond the capacity", 3, "gpu", "2.5", fault.Insufficient,
			"pool gpu is exhausted: 6 of its 8 are held, 2 are free and 2.5 were requested: request less, or try again once others have released some",
		},
		{
			"operator beyond the capacity", 0, "gpu", "1e20", fault.Insufficient,
			"pool gpu is exhausted: 6 of its 8 are held, 2 are free and 100000000000000000000 were requested: request less, or try again once others have released some",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.tokens.grant(4, nil)
			b.alloc(1, "gpu", "3")
			b.alloc(2, "gpu", "3")
			b.refused(tt.pid, "Syscall.Alloc", `{"resource_id":"`+tt.of+`","amount":`+tt.amount+`}`, tt.class, tt.message)
		})
	}
}

// TestOperatorHasNoQuota: as itself the operator is bounded by the capacity only; as an agent, by that agent's quota.
func TestOperatorHasNoQuota(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(0, "Syscall.Alloc", `{"resource_id":"gpu","amount":8}`, `{"resource_id":"gpu","amount":8,"reserved":8}`)
	b.must(0, "Syscall.Release", `{"resource_id":"gpu","amount":8}`, `{"resource_id":"gpu","amount":8}`)
	b.refused(1, "Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":6}`, fault.QuotaExceeded,
		`quota of gpu exceeded: pid 1 may hold 5, holds 0 and asked for 6: release some, or allow more with "pwos cap grant 1 --add --quota gpu=6"`)
}

// TestWithoutATokenNothingIsGiven: even if the gate let a process without a token through, its quota is 0.
func TestWithoutATokenNothingIsGiven(t *testing.T) {
	t.Parallel()
	call := request(t, 9, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`)
	if result, err := newBench(t).ledger.Decide(call); err == nil {
		t.Errorf("got %s", result.Data)
	}
}

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.alloc(1, "gpu", "1.5")
	b.refused(1, "Syscall.Release", `{"resource_id":"gpu","amount":2}`, fault.Conflict,
		"pid 1 holds 1.5 of gpu and cannot release 2: release at most what it holds")
	b.refused(2, "Syscall.Release", `{"resource_id":"gpu","amount":0.1}`, fault.Conflict,
		"pid 2 holds 0 of gpu and cannot release 0.1: release at most what it holds")
	b.refused(1, "Syscall.Release", `{"resource_id":"gpux","amount":0}`, fault.NotFound, `no resource is named "gpux": there are cpu, gpu`)
}

// TestLessThanIsHeld: a smaller quota or pool releases nothing, and allows no more.
func TestLessThanIsHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.alloc(1, "gpu", "4")
	b.alloc(2, "gpu", "2")
	b.alloc(2, "cpu", "1")
	b.tokens.grant(1, map[string]float64{"gpu": 3})
	b.refused(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":0.5}`, fault.QuotaExceeded,
		`quota of gpu exceeded: pid 1 may hold 3, holds 4 and asked for 0.5: release some, or allow more with "pwos cap grant 1 --add --quota gpu=4.5"`)

	state := domaintest.Snapshot(t, b.ledger)
	b.ledger = newLedger(t, map[string]float64{"gpu": 5}, b.tokens)
	testkit.Must(t, b.ledger.Restore(state))
	b.refused(2, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, fault.Insufficient,
		"pool gpu is exhausted: 6 of its 5 are held, 0 are free and 1 were requested: request less, or try again once others have released some")
	b.must(2, "Syscall.Query", `{"resource_id":"gpu"}`, `{"available":0,"capacity":5,"utilization":1}`)
	b.refused(2, "Syscall.Alloc", `{"resource_id":"cpu","amount":0}`, fault.NotFound, `no resource is named "cpu": there are gpu`)
	b.must(2, "Syscall.Release", `{"resource_id":"cpu","amount":1}`, `{"resource_id":"cpu","amount":1}`)
	b.refused(2, "Syscall.Release", `{"resource_id":"cpu","amount":0}`, fault.NotFound, `no resource is named "cpu": there are gpu`)
	b.must(1, "Syscall.Release", `{"resource_id":"gpu","amount":1.5}`, `{"resource_id":"gpu","amount":1.5}`)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":0.5}`, `{"resource_id":"gpu","amount":0.5,"reserved":3}`)
}

func TestFree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.alloc(1, "gpu", "4")
	b.alloc(1, "cpu", "0.5")
	b.alloc(2, "gpu", "2")
	b.alloc(3, "gpu", "1")
	b.must(0, "Resource.Free", `{"pids":[3,1,9,1]}`, `{"success":true}`)
	if got := fmt.Sprint(b.ledger.Holders()); got != "[2]" {
		t.Errorf("the holders are %s, want only 2", got)
	}
	b.must(0, "Syscall.Query", `{"resource_id":"gpu"}`, `{"available":6,"capacity":8,"utilization":0.25}`)
	b.must(0, "Syscall.Query", `{"resource_id":"cpu"}`, `{"available":1,"capacity":1,"utilization":0}`)
	b.must(0, "Resource.Free", `{"pids":[]}`, `{"success":true}`)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, capacity := range []float64{-1, math.Inf(1), math.Inf(-1), math.NaN()} {
		if l, err := resource.New(map[string]float64{"gpu": capacity}, nil, nil); l != nil || !errors.Is(err, resource.ErrCapacity) {
			t.Errorf("capacity %v: %v, %v", capacity, l, err)
		}
	}
}

func TestDecideKnowsItsOwnSyscallsOnly(t *testing.T) {
	t.Parallel()
	if _, err := newBench(t).ledger.Decide(request(t, 0, "Syscall.Ping", `{"payload":1}`)); err == nil {
		t.Error("Decide answers another domain's syscall")
	}
}

// TestFaults: a program decides by the id, and a person sees what it was about.
func TestFaults(t *testing.T) {
	t.Parallel()
	gpu := fault.Detail{Name: "resource", Value: "gpu"}
	for _, tt := range []struct {
		pid       int64
		typ, data string
		id        fault.ID
		details   []fault.Detail
	}{
		{1, "Syscall.Query", `{"resource_id":"gpux"}`, fault.ResourceNotFound, []fault.Detail{{Name: "resource", Value: "gpux"}}},
		{1, "Syscall.Alloc", `{"resource_id":"gpu","amount":6}`, fault.ResourceQuota, []fault.Detail{gpu, {Name: "pid", Value: "1"}}},
		{0, "Syscall.Alloc", `{"resource_id":"gpu","amount":9}`, fault.ResourceExhausted, []fault.Detail{gpu}},
		{1, "Syscall.Release", `{"resource_id":"gpu","amount":1}`, fault.ResourceNotHeld, []fault.Detail{gpu}},
		{0, "Capability.Get", `{"pid":9}`, fault.CapabilityNotFound, []fault.Detail{{Name: "pid", Value: "9"}}},
		{3, "Capability.Get", `{"pid":1}`, fault.CapabilityNotYours, []fault.Detail{{Name: "pid", Value: "1"}}},
		{0, "Capability.Check", `{"pid":1,"syscall":"Rocket.Launch"}`, fault.WireUnknownSyscall, []fault.Detail{{Name: "syscall", Value: "Rocket.Launch"}}},
	} {
		_, err := newBench(t).run(tt.pid, tt.typ, tt.data)
		if !errors.Is(err, tt.id) || !slices.Equal(domaintest.Shown(t, err).Details, tt.details) {
			t.Errorf("%s %s as %d: %v, want %s with %v", tt.typ, tt.data, tt.pid, err, tt.id, tt.details)
		}
	}
}

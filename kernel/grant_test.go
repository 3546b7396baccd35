package kernel_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestNewGrantIsCanonical(t *testing.T) {
	t.Parallel()
	grant := &schema.GrantInput{
		PID:             7,
		AllowedSyscalls: []string{"SYS_QUERY", "Memory.*", "*", "Memory.*", "Syscall.Query", "Sys.Describe"},
		ResourceQuotas:  map[string]float64{"gpu": 2.5, "cpu": math.Copysign(0, -1)},
		ExpiresAtTick:   new(int64(9)),
	}
	got, err := kernel.NewGrant(grant, 3, []string{"cpu", "gpu"})
	if err != nil {
		t.Fatal(err)
	}
	want := &token(7, map[string]float64{"gpu": 2.5, "cpu": 0}, new(int64(9)), "*", "Memory.*", "SYS_QUERY", "Sys.Describe", "Syscall.Query").Granted.TokenGrant
	want.GrantedBy = 3
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if math.Signbit(got.ResourceQuotas["cpu"]) {
		t.Error("a quota of -0 stays -0")
	}
	*grant.ExpiresAtTick, grant.AllowedSyscalls[2], grant.ResourceQuotas["gpu"] = 1, "x", 1
	if !reflect.DeepEqual(got, want) {
		t.Error("the token changes with the grant that it was made from")
	}
}

func TestNewGrantIsNeverNil(t *testing.T) {
	t.Parallel()
	got, err := kernel.NewGrant(&schema.GrantInput{PID: 1}, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, &schema.TokenGrant{GrantedBy: 3, AllowedSyscalls: []string{}, ResourceQuotas: map[string]float64{}}) || got.AllowedSyscalls == nil {
		t.Errorf("got %#v", got)
	}
}

func TestNewGrantRefuses(t *testing.T) {
	t.Parallel()
	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprintf("p%02d", i)
	}
	const unknown = ": no syscall has this type or code: Syscall.List names them, Domain.* stands for all of a domain, * for all"
	tests := []struct {
		pattern, resource string
		pools             []string
		field, message    string
	}{
		{pattern: "Memory.Sett", field: "allowed_syscalls[1]", message: `is "Memory.Sett"` + unknown},
		{pattern: "SYS_ALOC", field: "allowed_syscalls[1]", message: `is "SYS_ALOC"` + unknown},
		{pattern: "Memory*", field: "allowed_syscalls[1]", message: `is "Memory*"` + unknown},
		{pattern: "Memory", field: "allowed_syscalls[1]", message: `is "Memory"` + unknown},
		{pattern: "", field: "allowed_syscalls[1]", message: `is ""` + unknown},
		{pattern: "**", field: "allowed_syscalls[1]", message: `is "**"` + unknown},
		{pattern: "Mem.*", field: "allowed_syscalls[1]", message: `is "Mem.*": no syscall begins with Mem.`},
		{pattern: "*.*", field: "allowed_syscalls[1]", message: `is "*.*": no syscall begins with *.`},
		{pattern: "Resource.*", field: "allowed_syscalls[1]", message: `is "Resource.*": no syscall begins with Resource.`},
		{pattern: "Capability.Endow", field: "allowed_syscalls[1]", message: `is "Capability.Endow"` + unknown},
		{
			pattern: "Syscall.Shutdown", field: "allowed_syscalls[1]",
			message: `is "Syscall.Shutdown": only the operator may call it, whatever is granted`,
		},

		{resource: "gpux", pools: []string{"cpu", "gpu"}, field: "resource_quotas.gpux", message: "names no resource: there are cpu, gpu"},
		{resource: "gpu", field: "resource_quotas.gpu", message: "names no resource: the configuration has no resource pools; they belong in its table [resources]"},
		{
			resource: "gpu", pools: many, field: "resource_quotas.gpu",
			message: "names no resource: there are p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19 and 5 more",
		},
	}
	for _, tt := range tests {
		grant := &schema.GrantInput{PID: 7, AllowedSyscalls: []string{"Memory.Set"}}
		if tt.resource != "" {
			grant.ResourceQuotas = map[string]float64{tt.resource: 1}
		} else {
			grant.AllowedSyscalls = append(grant.AllowedSyscalls, tt.pattern)
		}
		message := "Invalid input: " + tt.field + " " + tt.message
		if got, err := kernel.NewGrant(grant, 3, tt.pools); got != nil || err == nil || err.Kind != fault.InvalidInput || err.Field != tt.field || err.Text() != message {
			t.Errorf("%q %q: got %v, %v, want %v", tt.pattern, tt.resource, got, err, message)
		}
	}
}

// TestDefaultGrant: the default grant is the list of CAP 1 and Ipc.Receive.
func TestDefaultGrant(t *testing.T) {
	t.Parallel()
	pools := []string{"cpu", "gpu"}
	got, err := kernel.NewGrant(kernel.DefaultGrant(7, pools), 0, pools)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"cpu": 200, "gpu": 200}; !reflect.DeepEqual(got.ResourceQuotas, want) || got.ExpiresAtTick != nil {
		t.Errorf("got %v", got)
	}
	codes, all := 0, &kernel.Token{Granted: schema.Token{TokenGrant: *got}}
	for _, row := range schema.Syscalls() {
		if all.Allows(row, 0) != (row.Code != "" || row.Type == "Ipc.Receive") {
			t.Errorf("%s, code %q: allowed %v", row.Type, row.Code, all.Allows(row, 0))
		}
		if row.Code != "" {
			codes++
		}
	}
	if codes != 10 || len(got.AllowedSyscalls) != 11 {
		t.Errorf("%d codes, %d granted, want ten", codes, len(got.AllowedSyscalls))
	}
}

// TestNewGrantOfItsOwn: a canonical grant stays the same.
func TestNewGrantOfItsOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grant := &schema.GrantInput{PID: 1, AllowedSyscalls: patterns().Draw(t, "allowed")}
		first, err := kernel.NewGrant(grant, 3, nil)
		if err != nil {
			return // an internal or an operator's row was drawn
		}
		grant.AllowedSyscalls = first.AllowedSyscalls
		second, err := kernel.NewGrant(grant, 3, nil)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%v becomes %v, %v", first, second, err)
		}
		if err := (&kernel.Token{Granted: schema.Token{TokenGrant: asOperator(*first)}}).Covers(second, 0); err != nil {
			t.Fatalf("a token does not cover itself: %v", err)
		}
	})
}

// asOperator is the same grant by the operator.
func asOperator(g schema.TokenGrant) schema.TokenGrant {
	g.GrantedBy = kernel.Operator
	return g
}

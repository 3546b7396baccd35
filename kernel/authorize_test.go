package kernel_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestAuthorize: the three checks of CAP 2 that need only a token, and the exempt callers.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	all := token(7, nil, nil, "*")
	until5 := token(7, nil, new(int64(5)), "Memory.Set")
	tests := []struct {
		name  string
		pid   int64
		token *kernel.Token
		typ   string
		tick  int64
		want  string // empty: allowed
	}{
		{"operator", 0, nil, "Memory.Set", 0, ""},
		{"operator shuts down", 0, nil, "Syscall.Shutdown", 0, ""},
		{"everyone's without a token", 7, nil, "Syscall.Ping", 0, ""},
		{"everyone's with an expired one", 7, until5, "Syscall.Ping", 9, ""},
		{"granted", 7, until5, "Memory.Set", 5, ""},
		{"all granted", 7, all, "Syscall.Alloc", 0, ""},
		{"no token", 7, nil, "Memory.Set", 0, `pid 7 may not call Memory.Set: allow it too with "pwos cap grant 7 --add Memory.Set"`},
		{"not allowed", 7, until5, "Memory.Get", 5, `pid 7 may not call Memory.Get: allow it too with "pwos cap grant 7 --add Memory.Get"`},
		{
			"expired", 7, until5, "Memory.Set", 6,
			`pid 7 may not call Memory.Set: its token expired after tick 5, and it is tick 6: allow it again with "pwos cap grant 7 --add Memory.Set --ttl 1h"`,
		},
		{
			"expired comes before not allowed", 7, until5, "Memory.Get", 8,
			`pid 7 may not call Memory.Get: its token expired after tick 5, and it is tick 8: allow it again with "pwos cap grant 7 --add Memory.Get --ttl 1h"`,
		},
		{"never existed", 9, nil, "Ipc.Receive", 0, `pid 9 may not call Ipc.Receive: no process ever had this pid: "pwos ps" lists the processes`},
		{"never existed, everyone's", 9, nil, "Syscall.Ping", 0, ""},
		{"the operator's own", 7, all, "Syscall.Shutdown", 0, "pid 7 may not call Syscall.Shutdown: only the operator may"},
		{"the kernel's own", 7, all, "Capability.Strip", 0, "pid 7 may not call Capability.Strip: it is the kernel's own"},
		{"the kernel's own, operator", 0, nil, "Resource.Free", 0, "pid 0 may not call Resource.Free: it is the kernel's own"},
	}
	for _, tt := range tests {
		err := kernel.Authorize(everybody{}, tt.pid, tt.token, lookup(t, tt.typ), tt.tick)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: denied: %v", tt.name, err)
		case tt.want != "" && (err == nil || err.Text() != tt.want || err.Kind != fault.Forbidden):
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// everybody is a process table with 1 to 8, in which 8 has ended.
type everybody struct{}

func (everybody) Process(pid int64) *schema.Descriptor {
	switch {
	case pid > 8:
		return nil
	case pid == 8:
		return &schema.Descriptor{PID: pid, State: "TERMINATED"}
	}
	return &schema.Descriptor{PID: pid, State: "READY"}
}

// TestAuthorizeEnded: an ended process gets 410, not a denial, whatever it calls.
func TestAuthorizeEnded(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"Ipc.Receive", "Syscall.Ping", "Syscall.Shutdown"} {
		err := kernel.Authorize(everybody{}, 8, token(8, nil, nil, "*"), lookup(t, typ), 0)
		if err == nil || err.Code() != 410 || err.EventCode() != "CONFLICT" || err.Text() != `pid 8 has ended, and calls nothing any more: "pwos ps" lists the processes` {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// origins is a process table that has only origins.
type origins map[int64]string

func (o origins) Process(pid int64) *schema.Descriptor {
	origin, ok := o[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, Origin: origin}
}

// TestVisible: the operator sees every process, an agent those of its origin; a forgotten process has no origin.
func TestVisible(t *testing.T) {
	t.Parallel()
	table := origins{1: "a", 2: "a", 3: "b", 4: ""}
	for _, tt := range []struct {
		caller int64
		origin string
		seen   []int64
	}{
		{kernel.Operator, "a", []int64{1, 2, 3, 4}},
		{1, "a", []int64{1, 2}},
		{3, "b", []int64{3}},
		{9, "c", nil},
	} {
		var seen []int64
		for pid := int64(0); pid < 6; pid++ {
			if kernel.Visible(table, &kernel.Call{Decision: kernel.Decision{PID: tt.caller, Origin: tt.origin}}, pid) != nil {
				seen = append(seen, pid)
			}
		}
		if !slices.Equal(seen, tt.seen) {
			t.Errorf("pid %d of %s sees %v, want %v", tt.caller, tt.origin, seen, tt.seen)
		}
	}
}

// parents is a process table that has only parents.
type parents map[int64]int64

func (p parents) Process(pid int64) *schema.Descriptor {
	parent, ok := p[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, ParentPID: parent}
}

func TestDescends(t *testing.T) {
	t.Parallel()
	family := parents{1: 0, 2: 1, 3: 2, 4: 1, 5: 0, 8: 9, 9: 8, 10: 10, 11: 7}
	tests := []struct {
		pid, ancestor int64
		want          bool
	}{
		{2, 1, true},
		{3, 1, true},
		{3, 2, true},
		{4, 1, true},
		{1, 0, true},
		{3, 0, true},
		{1, 1, false},
		{1, 2, false},
		{4, 2, false},
		{5, 1, false},
		{6, 1, false},  // never existed
		{11, 1, false}, // its parent never existed
		{0, 0, false},
		{8, 1, false}, // a damaged table does not loop
		{9, 1, false},
		{10, 1, false},
	}
	for _, tt := range tests {
		if got := kernel.Descends(family, tt.pid, tt.ancestor); got != tt.want {
			t.Errorf("%d descends from %d: %v", tt.pid, tt.ancestor, got)
		}
	}
}

// TestDenialsByID: programs decide by the ids of denials.
func TestDenialsByID(t *testing.T) {
	t.Parallel()
	until5 := token(7, nil, new(int64(5)), "Memory.Set")
	for _, tt := range []struct {
		pid   int64
		token *kernel.Token
		typ   string
		tick  int64
		want  fault.ID
	}{
		{7, nil, "Memory.Set", 0, fault.CapabilityDenied},
		{7, until5, "Memory.Get", 5, fault.CapabilityDenied},
		{7, until5, "Memory.Set", 6, fault.CapabilityExpired},
		{7, by(until5, 2, token(7, nil, nil, "Memory.Set")), "Memory.Set", 6, fault.CapabilityExpired},
		{7, until5, "Syscall.Shutdown", 5, fault.CapabilityOperatorOnly},
		{8, until5, "Memory.Set", 5, fault.ProcessEnded},
	} {
		if err := kernel.Authorize(everybody{}, tt.pid, tt.token, lookup(t, tt.typ), tt.tick); err == nil || err.ID != tt.want {
			t.Errorf("pid %d, %s at %d: %v, want %s", tt.pid, tt.typ, tt.tick, err, tt.want)
		}
	}
}

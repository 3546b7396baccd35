package main_test

import (
	"maps"
	"slices"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

// call is an entry of the record; answer is empty where the call failed.
func call(typ, answer string) schema.AuditEntry {
	return schema.AuditEntry{Type: typ, Success: answer != "", Payload: schema.Value(answer)}
}

// What was called needs a grant, whatever came of it; what needs none, what no grant allows, and the kernel's own do not. Of a
// resource the most that was held at a time counts.
func TestLearned(t *testing.T) {
	t.Parallel()
	allow, peaks, beyond, denied, children := pwos.Learned([]schema.AuditEntry{
		call("Syscall.Ping", `null`),
		call("Memory.Get", ``),
		call("Memory.Set", `{"success":true}`),
		call("Memory.Set", `{"success":true}`),
		call("Syscall.Alloc", `{"resource_id":"gpu","amount":2,"reserved":2}`),
		call("Syscall.Alloc", `{"resource_id":"gpu","amount":3,"reserved":5}`),
		call("Syscall.Alloc", ``),
		call("Syscall.Alloc", `{"resource_id":"gpu","amount":1,"reserved":1}`),
		call("Syscall.Spawn", `{"child_pid":9,"child_agent_id":"x"}`),
		call("Syscall.Spawn", ``),
		call("Syscall.Shutdown", ``),
		call("Process.NoteStart", `{"success":true}`),
		call("Nobody.Knows", `null`),
	}, []string{"SYS_ALLOC", "Memory.*"})
	if want := []string{"Memory.Get", "Memory.Set", "Syscall.Alloc", "Syscall.Spawn"}; !slices.Equal(allow, want) {
		t.Errorf("it needs %q, want %q", allow, want)
	}
	if want := map[string]float64{"gpu": 5}; !maps.Equal(peaks, want) {
		t.Errorf("it held %v, want %v", peaks, want)
	}
	if want := map[string]int{"Syscall.Shutdown": 1}; !maps.Equal(beyond, want) {
		t.Errorf("nobody is granted %v, want %v", beyond, want)
	}
	if want := map[string]int{"Syscall.Spawn": 2}; !maps.Equal(denied, want) {
		t.Errorf("denied would be %v, want %v", denied, want)
	}
	if !slices.Equal(children, []int64{9}) {
		t.Errorf("its children are %v", children)
	}
}

// Patterns are types, codes, whole domains, or everything.
func TestLearnedDenied(t *testing.T) {
	t.Parallel()
	for pattern, denies := range map[string]bool{
		"*": false, "Memory.*": false, "Memory.Set": false, "Memory.Get": true, "Mem.*": true, "SYS_ALLOC": true, "": true,
	} {
		_, _, _, denied, _ := pwos.Learned([]schema.AuditEntry{call("Memory.Set", `{}`)}, []string{pattern})
		if got := len(denied) > 0; got != denies {
			t.Errorf("%q denies Memory.Set: %v", pattern, got)
		}
	}
	if allow, _, _, _, _ := pwos.Learned(nil, nil); !slices.Equal(allow, []string{"Syscall.Ping"}) {
		t.Errorf("who calls nothing needs %q: a grant must name something", allow)
	}
}

// Each entry stands below its cause, receiving below sending, and none is left out or told twice, whatever ids agents make up.
func TestArranged(t *testing.T) {
	t.Parallel()
	entry := func(seq, pid int64, typ, id, causation string) schema.AuditEntry {
		return schema.AuditEntry{Seq: seq, PID: pid, Type: typ, ID: id, Causation: schema.MaybeText(causation), Success: true, Payload: schema.Value(`{}`)}
	}
	receive := entry(5, 1, "Ipc.Receive", "e", "")
	receive.Payload = schema.Value(`{"messages":[{"msg_id":1,"sender_pid":2,"receiver_pid":1,"intent":"","payload":1,"priority":"NORMAL","sent_tick":0,"causation":"d"}]}`)
	for _, tt := range []struct {
		name    string
		entries []schema.AuditEntry
		seqs    []int64
		depths  []int
	}{
		{"nothing", nil, nil, nil},
		{"a cause that is written after its effects", []schema.AuditEntry{
			entry(1, 0, "Capability.Endow", "a", "c"), entry(2, 0, "Ipc.Open", "b", "c"), entry(3, 0, "Syscall.Spawn", "c", ""),
		}, []int64{3, 1, 2}, []int{0, 1, 1}},
		{"a message and who received it", []schema.AuditEntry{
			entry(4, 2, "Syscall.SendMsg", "d", ""), receive,
		}, []int64{4, 5}, []int{0, 1}},
		{"what the operator asks is no part of it", []schema.AuditEntry{
			entry(1, 0, "Process.Get", "a", ""), entry(2, 1, "Process.Get", "b", ""),
		}, []int64{2}, []int{0}},
		{"a cause that is unknown, or itself", []schema.AuditEntry{
			entry(1, 1, "Memory.Set", "a", "nowhere"), entry(2, 1, "Memory.Set", "b", "b"),
		}, []int64{1, 2}, []int{0, 0}},
		{"two of one id", []schema.AuditEntry{
			entry(1, 1, "Memory.Set", "a", ""), entry(2, 2, "Memory.Set", "a", ""), entry(3, 2, "Memory.Set", "b", "a"),
		}, []int64{1, 3, 2}, []int{0, 1, 0}},
	} {
		seqs, depths := pwos.Arranged(tt.entries)
		if !slices.Equal(seqs, tt.seqs) || !slices.Equal(depths, tt.depths) {
			t.Errorf("%s: entries %v at depths %v, want %v at %v", tt.name, seqs, depths, tt.seqs, tt.depths)
		}
	}
}

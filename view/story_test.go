package view_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

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
		seqs, depths := arranged(tt.entries)
		if !slices.Equal(seqs, tt.seqs) || !slices.Equal(depths, tt.depths) {
			t.Errorf("%s: entries %v at depths %v, want %v at %v", tt.name, seqs, depths, tt.seqs, tt.depths)
		}
	}
}

// arranged lists entries as the demo's story does: each by its number, with its depth.
func arranged(entries []schema.AuditEntry) (seqs []int64, depths []int) {
	var list []view.Entry
	for _, e := range entries {
		list = append(list, view.Entry{AuditEntry: e})
	}
	for _, scene := range view.Arrange(list) {
		seqs, depths = append(seqs, scene.Seq), append(depths, scene.Depth)
	}
	return seqs, depths
}

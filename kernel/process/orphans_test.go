package process_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// TestOrphans: exactly what belongs to no living process is removed.
func TestOrphans(t *testing.T) {
	t.Parallel()
	alive := func(pid int64) bool { return pid == 3 || pid == 4 }
	for _, c := range []struct {
		name                       string
		tokens, holders, mailboxes []int64
		want                       []schema.Request
	}{
		{"nothing", nil, nil, nil, nil},
		{"all alive", []int64{4, 3}, []int64{3}, []int64{3, 4}, nil},
		{"the operator", []int64{0}, []int64{0}, nil, nil},
		{"some dead", []int64{9, 3, 1, 9}, []int64{0, 2}, []int64{4, 7}, []schema.Request{
			schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{1, 9}}),
			schema.ResourceFree.With(&schema.ResourceFreeInput{PIDs: []int64{2}}),
			schema.IPCClose.With(&schema.MailboxInput{PIDs: []int64{7}}),
		}},
		{"mailboxes only", nil, []int64{3}, []int64{5}, []schema.Request{
			schema.IPCClose.With(&schema.MailboxInput{PIDs: []int64{5}}),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, process.Orphans(alive, c.tokens, c.holders, c.mailboxes), sameRow); diff != "" {
				t.Error(diff)
			}
		})
	}
}

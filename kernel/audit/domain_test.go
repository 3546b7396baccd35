package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// rows is a journal whose entries are all the operator's.
type rows struct {
	audit.Journal
	types    []string
	notified bool
}

func (r *rows) Notify() { r.notified = true }

func (r *rows) Since(_ context.Context, _, from int64, _ bool, reach func(int64) bool, wanted func(string) bool) (found []schema.AuditEntry, next int64, err error) {
	for i, typ := range r.types {
		if seq := int64(i) + 1; seq >= from && reach(kernel.Operator) && wanted(typ) {
			found = append(found, schema.AuditEntry{Seq: seq, Type: typ})
		}
	}
	return found, max(from, int64(len(r.types))+1), nil
}

// nobody is a process table without processes.
type nobody struct{}

func (nobody) Process(int64) *schema.Descriptor { return nil }

// TestWatch: a subscription's question finds the wanted entries from its first entry on, by default the one after its
// own, and continues after the last entry that it examined. Without a new entry it waits for the next one.
func TestWatch(t *testing.T) {
	t.Parallel()
	all := []string{"Memory.Set", "Memory.Get", "Audit.Subscribe", "Memory.Set", "MemoryX.Set", "Http.Fetch"}
	for _, tt := range []struct {
		from  int64
		types []string
		want  int
		next  int64 // 0: it waits
	}{
		{1, nil, 6, 7},
		{0, nil, 3, 7},
		{4, []string{"Memory.*"}, 1, 7},
		{1, []string{"Memory.Set", "Http.*"}, 3, 7},
		{1, []string{"Memory.Se"}, 0, 7},
		{7, nil, 0, 0},
		{9, nil, 0, 0},
	} {
		journal := &rows{types: all}
		d := audit.New(journal, nobody{})
		call := &kernel.Call{Request: kernel.Request{Syscall: schema.AuditWatch.Syscall, Input: &schema.AuditWatchInput{From: tt.from, Types: tt.types}, Cause: 3}}
		result, err := d.Decide(call)
		if err != nil || result.Read == nil || !journal.notified {
			t.Fatalf("from %d: %+v, %v, notified %v", tt.from, result, err, journal.notified)
		}
		result, err = result.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tt.next == 0 {
			if result.Wait != kernel.Forever {
				t.Errorf("from %d: %+v, want it to wait", tt.from, result)
			}
			continue
		}
		next := result.Lasting.Follow.Input.(*schema.AuditWatchInput)
		if len(result.Lasting.Events) != tt.want || next.From != tt.next || !slices.Equal(next.Types, tt.types) {
			t.Errorf("from %d, %v: %d events, then %+v; want %d, then %d", tt.from, tt.types, len(result.Lasting.Events), next, tt.want, tt.next)
		}
	}
}

// TestRequestsAreTheOperators: no agent gets the data of messages, which contain other processes' texts.
func TestRequestsAreTheOperators(t *testing.T) {
	t.Parallel()
	yes := true
	for _, call := range []*kernel.Call{
		{Request: kernel.Request{Syscall: schema.AuditLog.Syscall, Input: &schema.AuditLogInput{Request: &yes}}, Decision: kernel.Decision{PID: 7}},
		{Request: kernel.Request{Syscall: schema.AuditSubscribe.Syscall, Input: &schema.AuditSubscribeInput{Request: &yes}}, Decision: kernel.Decision{PID: 7}},
	} {
		d := audit.New(&rows{}, nobody{})
		if _, err := d.Decide(call); !errors.Is(err, fault.CapabilityOperatorOnly) {
			t.Errorf("%s: %v", call.Syscall.Type, err)
		}
	}
}

package main_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// rowsAt returns entries with these times, numbered from seq.
func rowsAt(seq int64, times ...int64) (rows []schema.AuditEntry) {
	for i, at := range times {
		rows = append(rows, schema.AuditEntry{Seq: seq + int64(i), Time: at, Type: "Memory.Set", PID: 1})
	}
	return rows
}

// TestTimeline checks that records are read page by page and merged by time. A kernel that does not answer, at the start or later, or whose
// record does not advance, is reported, and the other records are read to their end.
func TestTimeline(t *testing.T) {
	t.Parallel()
	away := client.AsAnswered(fault.ClusterKernelAway.New("the kernel beta cannot be reached"))
	type page struct {
		rows []schema.AuditEntry
		next int64
		err  error
	}
	alpha := map[int64]page{0: {rows: rowsAt(1, 10, 20), next: 2}, 2: {rows: rowsAt(3, 30)}}
	for _, test := range []struct {
		name          string
		limit         int64
		beta          map[int64]page
		read, missing string
	}{
		{"in turn", 0, map[int64]page{0: {rows: rowsAt(1, 15), next: 1}, 1: {rows: rowsAt(2, 25)}}, "alpha:1 beta:1 alpha:2 beta:2 alpha:3", ""},
		{"limit", 3, map[int64]page{0: {rows: rowsAt(1, 15), next: 1}, 1: {rows: rowsAt(2, 25)}}, "alpha:1 beta:1 alpha:2", ""},
		{"a page without wanted entries", 0, map[int64]page{0: {next: 9}, 9: {rows: rowsAt(10, 25)}}, "alpha:1 alpha:2 beta:10 alpha:3", ""},
		{"away", 0, map[int64]page{0: {err: away}}, "alpha:1 alpha:2 alpha:3", "beta"},
		{"away in between", 0, map[int64]page{0: {rows: rowsAt(1, 15), next: 1}, 1: {err: away}}, "alpha:1 beta:1 alpha:2 alpha:3", "beta"},
		{"the same page again", 0, map[int64]page{0: {rows: rowsAt(1, 15), next: 1}, 1: {rows: rowsAt(2, 16), next: 1}}, "alpha:1 beta:1 alpha:2 alpha:3", "beta"},
		{"a record that goes back", 0, map[int64]page{0: {rows: append(rowsAt(5, 15), rowsAt(4, 16)...)}}, "alpha:1 beta:5 alpha:2 alpha:3", "beta"},
	} {
		read, missing, err := pwos.MergedPages(test.limit, []string{"alpha", "beta"}, func(kernel string, since int64) ([]schema.AuditEntry, int64, error) {
			pages := alpha
			if kernel == "beta" {
				pages = test.beta
			}
			p, ok := pages[since]
			if !ok {
				t.Fatalf("%s: %s is asked for entries after %d", test.name, kernel, since)
			}
			return p.rows, p.next, p.err
		})
		if got := strings.Join(read, " "); err != nil || got != test.read || strings.Join(missing, " ") != test.missing {
			t.Errorf("%s: %s, missing %s, %v", test.name, got, missing, err)
		}
	}
	_, _, err := pwos.MergedPages(0, []string{"alpha", "beta"}, func(string, int64) ([]schema.AuditEntry, int64, error) {
		return nil, 0, client.AsAnswered(fault.CapabilityDenied.New("no"))
	})
	if !errors.Is(err, fault.CapabilityDenied) {
		t.Errorf("after a refusal of the first kernel: %v", err)
	}
}

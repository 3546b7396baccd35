package fault_test

import (
	"regexp"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
)

// TestExit walks the catalogue: each id has an exit status of PROTOCOL 8, and one that agrees with what its meaning says about
// whether the call was done.
func TestExit(t *testing.T) {
	t.Parallel()
	byKind := map[fault.Kind]int{
		fault.Internal: 1, fault.InvalidJSON: 1, fault.SchemaViolation: 1, fault.LineTooLong: 1, fault.InvalidInput: 1,
		fault.Upstream: 1, fault.Unavailable: 1, fault.Insufficient: 1,
		fault.Unauthenticated: 3, fault.Forbidden: 3, fault.NotFound: 4, fault.UnknownSyscall: 4, fault.QuotaExceeded: 5,
		fault.Timeout: 7, fault.Conflict: 8, fault.Ended: 8, fault.Pending: 9,
	}
	byID := map[fault.ID]int{
		"usage.invalid": 2, "process.not_started": 127, "process.not_executable": 126,
		"auth.busy": 6, "cluster.away": 6, "cluster.bus": 6, "cluster.kernel_away": 6, "daemon.hung_up": 6, "daemon.inside_agent": 6, "daemon.launch_failed": 6,
		"daemon.no_answer": 6, "daemon.not_running": 6, "daemon.unreachable": 6, "kernel.stopping": 6,
		"call.cancelled": 7, "cluster.fenced": 7, "cluster.unknown_outcome": 7, "journal.lost": 7, "kernel.interrupted": 7,
		"provider.bad_answer": 7, "provider.died": 7,
		"backup.broken": 10, "crypto.broken": 10, "ingest.integrity": 10, "seal.broken": 10, "state.damaged": 10,
	}
	unknown := regexp.MustCompile(`may have had effects|may or may not|may be lost|or it shows at`)
	away := regexp.MustCompile(`cannot be reached|No kernel is running|no majority`)
	undone := regexp.MustCompile(`[Nn]othing was (done|changed|restored)`)
	for _, e := range fault.Catalogue() {
		want, ok := byID[e.ID]
		if !ok {
			if want, ok = byKind[e.Kind]; !ok {
				t.Errorf("%s: no exit status for %v", e.ID, e.Kind)
			}
		}
		delete(byID, e.ID)
		got := e.ID.Exit()
		switch {
		case got != want:
			t.Errorf("%s ends a verb with %d, want %d", e.ID, got, want)
		case unknown.MatchString(e.Meaning) && got != fault.ExitUnknown:
			t.Errorf("%s ends a verb with %d, and means: %s", e.ID, got, e.Meaning)
		case away.MatchString(e.Meaning) && got != fault.ExitUnreachable && got != fault.ExitUnknown:
			t.Errorf("%s ends a verb with %d, and means: %s", e.ID, got, e.Meaning)
		case undone.MatchString(e.Meaning) && !unknown.MatchString(e.Meaning) && got == fault.ExitUnknown:
			t.Errorf("%s ends a verb with %d, and means: %s", e.ID, got, e.Meaning)
		}
	}
	for id := range byID {
		t.Errorf("%s is not in the catalogue", id)
	}
	for _, f := range []*fault.Fault{{Kind: fault.Timeout, ID: "moon.full"}, {Status: 451, ID: "moon.full"}} { // of a newer kernel
		if got := f.Exit(); got != byKind[f.Kind] {
			t.Errorf("%v: %d", f.Kind, got)
		}
	}
}

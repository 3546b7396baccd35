package cluster

import (
	"regexp"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
)

// Each kind has a verdict, and no error whose meaning leaves open what was done ends a letter or a call.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	if len(verdicts) != int(fault.Pending)+1 || fault.Kind(len(verdicts)).Valid() {
		t.Errorf("%d kinds have a verdict", len(verdicts))
	}
	uncertain := regexp.MustCompile(`may or may not|may have (happened|had effects)|may be lost|was made before|still running|has not answered yet`)
	n := 0
	for _, e := range fault.Catalogue() {
		f := failureOf(e.ID.New("x")).fault() // as it arrives from another kernel
		if uncertain.MatchString(e.Meaning) {
			n++
			if v := verdictOf(f); v != unknown {
				t.Errorf("%s: verdict %d, although %s", e.ID, v, e.Meaning)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d errors leave open what was done", n)
	}
	for id, want := range map[fault.ID]verdict{
		fault.IpcNoMailbox: nothingDone, fault.CapabilityDenied: nothingDone, fault.PolicyDenied: nothingDone, fault.ApprovalRefused: nothingDone,
		fault.IpcMailboxFull: notNow, fault.ApprovalPending: notNow, fault.BudgetExhausted: notNow,
		fault.ClusterReplayed: unknown, fault.KernelInternal: unknown, fault.ClusterAway: unknown, fault.CallCancelled: unknown,
	} {
		if got := verdictOf(failureOf(id.New("x")).fault()); got != want {
			t.Errorf("%s: verdict %d, want %d", id, got, want)
		}
	}
	for code, want := range map[int64]verdict{404: nothingDone, 429: notNow, 500: unknown, 503: unknown, 0: unknown, 299: unknown} {
		if got := verdictOf((&failure{ID: "of.a_later_version", Code: code}).fault()); got != want {
			t.Errorf("unknown id with code %d: verdict %d, want %d", code, got, want)
		}
	}
}

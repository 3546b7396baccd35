package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

func segmentPath(first uint64) string { return fmt.Sprintf("%s/%020d.ndjson", dir, first) }

func verify(t *testing.T, fsys journal.FS, dir string, o journal.VerifyOptions) *journal.Report {
	t.Helper()
	report, err := journal.Verify(t.Context(), fsys, dir, o)
	testkit.Must(t, err)
	return report
}

func TestLimitsWithoutKeys(t *testing.T) {
	t.Parallel()
	report := verify(t, faultfs.FromImage(signedJournal(t)), dir, journal.VerifyOptions{})
	limits := strings.Join(report.Limits(), "\n")
	if !report.OK() || !strings.Contains(limits, "has to be known from elsewhere") {
		t.Errorf("got %v with limits %q", report.Findings, limits)
	}
	if report.Checkpoints != 9 || report.Vouched != 40 || len(report.Keys) != 1 || report.Keys[0] != newHostKey(1).Public() {
		t.Errorf("got %+v", report)
	}
}

func TestVerifyCountsWhatItDoesNotList(t *testing.T) {
	t.Parallel()
	m := signedJournal(t)
	m[segmentPath(37)] = append(m[segmentPath(37)], strings.Repeat("x\n", 150)...)
	report := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{})
	if len(report.Findings) != journal.MaxFindings || report.Omitted != 50 {
		t.Errorf("%d findings and %d omitted", len(report.Findings), report.Omitted)
	}
}

func TestVerifyErrors(t *testing.T) {
	t.Parallel()
	disk := faultfs.FromImage(signedJournal(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := journal.Verify(ctx, disk, dir, journal.VerifyOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
	if _, err := journal.Verify(t.Context(), disk, dir, journal.VerifyOptions{Keys: []string{"x"}}); err == nil {
		t.Error("an invalid key was accepted")
	}
	forged := journal.Checkpoint{Head: journal.Head{Seq: 1}}
	forged.Key = newHostKey(1).Public()
	o := journal.VerifyOptions{Known: []journal.Checkpoint{forged}}
	if _, err := journal.Verify(t.Context(), disk, dir, o); err == nil {
		t.Error("a forged checkpoint from outside was accepted")
	}
	o.Known = checkpoints(t, disk)[:1]
	o.Keys = []string{newHostKey(2).Public()}
	if _, err := journal.Verify(t.Context(), disk, dir, o); err == nil {
		t.Error("a checkpoint from outside by a key that is not trusted was accepted")
	}
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	_, err = journal.Verify(t.Context(), fsys, dir, journal.VerifyOptions{})
	testkit.Must(t, err)
	for n := fsys.Count(); n > 0; n-- {
		fsys.Arm(faultfs.Fault{N: n, Err: syscall.EIO})
		if _, err := journal.Verify(t.Context(), fsys, dir, journal.VerifyOptions{}); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s failed: got %v", fsys.Hit(), err)
		}
	}
}

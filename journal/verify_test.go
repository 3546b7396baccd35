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

// What nobody could find from the files alone is said, and is found with a checkpoint that was kept outside.
func TestLimits(t *testing.T) {
	t.Parallel()
	good := signedJournal(t)
	kept := checkpoints(t, faultfs.FromImage(good))
	last := kept[len(kept)-1]
	for name, c := range map[string]struct {
		change func(image)
		limits []string
		found  string // with the last checkpoint
	}{
		"nothing": {func(image) {}, []string{"together"}, ""},
		"cut with its checkpoints": {
			func(m image) {
				m.cutAfter(20)
				m.splice(checkpointsPath, 4, 5)
				delete(m, headPath)
			},
			[]string{"The last 2 entries (19 to 20) follow the last checkpoint", "together"},
			"the checkpoint kept outside vouches that entry 40 was on disk",
		},
		"rebuilt with its checkpoints": {
			func(m image) {
				edit(20, `"pid":6`, `"pid":0`)(m)
				m.rebuild(21)
				m.splice(checkpointsPath, 4, 5)
			},
			[]string{"The last 22 entries (19 to 40) follow the last checkpoint", "together"},
			"entry 40 is not the one that the checkpoint kept outside vouches for",
		},
	} {
		m := image(faultfs.FromImage(good).Image())
		c.change(m)
		o := journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}}
		report := verify(t, faultfs.FromImage(m), dir, o)
		limits := report.Limits()
		if !report.OK() || len(limits) != len(c.limits) {
			t.Errorf("%s: got %v with limits %q", name, report.Findings, limits)
		}
		for i, want := range c.limits {
			if i < len(limits) && !strings.Contains(limits[i], want) {
				t.Errorf("%s: got %q, want %q", name, limits[i], want)
			}
		}
		o.Known = []journal.Checkpoint{last}
		report = verify(t, faultfs.FromImage(m), dir, o)
		if report.OK() != (c.found == "") || !report.OK() && !strings.Contains(report.Findings[0].Reason, c.found) {
			t.Errorf("%s: with a checkpoint from outside: got %v", name, report.Findings)
		}
		if c.found == "" && len(report.Limits()) != 0 {
			t.Errorf("%s: with a checkpoint from outside: limits %q", name, report.Limits())
		}
	}
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

func TestVerifyReportsTheTornEnd(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{"half a line": `{"seq":41`, "nothing but NULs": "\x00\x00\n{}\n\x00"} {
		m := signedJournal(t)
		m[segmentPath(37)] = append(m[segmentPath(37)], tail...)
		report := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{})
		if !report.OK() || report.TornBytes != int64(len(tail)) || report.TornFile != segmentPath(37) || report.Head.Seq != 40 {
			t.Errorf("%s: got %+v", name, report)
		}
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
		t.Error("a key that is none was taken")
	}
	forged := journal.Checkpoint{Head: journal.Head{Seq: 1}}
	forged.Key = newHostKey(1).Public()
	o := journal.VerifyOptions{Known: []journal.Checkpoint{forged}}
	if _, err := journal.Verify(t.Context(), disk, dir, o); err == nil {
		t.Error("a forged checkpoint from outside was taken")
	}
	o.Known = checkpoints(t, disk)[:1]
	o.Keys = []string{newHostKey(2).Public()}
	if _, err := journal.Verify(t.Context(), disk, dir, o); err == nil {
		t.Error("a checkpoint from outside by a key that is not trusted was taken")
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

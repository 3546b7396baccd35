package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// The power is cut, or the process dies, at each operation of redactions and of an archiving after them: the journal opens,
// and a line is redacted if an entry vouches for it.
func TestRedactionCutAnywhere(t *testing.T) {
	t.Parallel()
	cutAnywhere(t, func(t *testing.T, k *keeper) {
		for _, seq := range []uint64{5, 40, 9} { // one is in the segment that is being written, one at a segment's end
			testkit.Must(t, k.redact(t.Context(), seq))
		}
		testkit.Must(t, k.archive(t.Context(), 12, archiveDir))
	}, func(t *testing.T, disk *faultfs.Disk) {
		names, err := disk.ReadDir(dir)
		testkit.Must(t, err)
		held(t, disk, 40)
		// The disk may lose one half of a rename, and the copy with it, which real file systems do not do.
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".rewritten") }) {
			isRedacted(t, disk)
		}
	})
}

// isRedacted checks, after a journal was opened, that the lines that entries vouch for have no secret.
func isRedacted(t *testing.T, disk *faultfs.Disk) (n int) {
	t.Helper()
	lines := make(map[uint64]*journal.Record)
	all := readAll(t, disk, 0)
	for i := range all {
		rec := &all[i]
		lines[rec.Seq] = rec
	}
	for _, rec := range lines {
		var seq uint64
		if _, err := fmt.Sscanf(string(rec.Request), `{"kind":"command","type":"Audit.Redacted","data":{"seq":%d,`, &seq); err != nil {
			continue
		}
		n++
		if line := lines[seq]; line != nil && (!line.Redacted || bytes.Contains(line.Line, []byte(secret))) {
			t.Fatalf("entry %d vouches for a line that is not redacted: %s", rec.Seq, line.Line)
		}
	}
	return n
}

// A lost file of redactions loses nothing: the entries have the same information, for readers, Verify, a start, and the
// next redaction.
func TestRedactionsLost(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 40)
	for _, seq := range []uint64{5, 9, 14} { // in the middle of a segment, at its end, at the start of one
		testkit.Must(t, k.redact(t.Context(), seq))
	}
	testkit.Must(t, k.log.Close())
	const path = dir + "/redactions"
	for name, lose := range map[string]func(image){
		"removed":   func(m image) { delete(m, path) },
		"emptied":   func(m image) { m[path] = []byte("\n") },
		"cut":       func(m image) { m[path] = m[path][:len(m[path])/2] },
		"altered":   func(m image) { m[path][8] ^= 1 },
		"not ours":  func(m image) { m[path] = []byte("what is this?\n") },
		"signature": func(m image) { m[path] = bytes.Replace(m[path], []byte(`"by":41`), []byte(`"by":40`), 1) },
	} {
		m := maps.Clone(image(k.disk.Image()))
		m[path] = slices.Clone(m[path])
		lose(m)
		disk := faultfs.FromImage(m)
		for range 2 { // as it is found, and after a start
			report := verify(t, disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
			if !report.OK() || report.Redacted != 3 || report.VouchedElsewhere != 0 {
				t.Fatalf("%s: %+v", name, report)
			}
			if n := isRedacted(t, disk); n != 3 {
				t.Fatalf("%s: %d redactions", name, n)
			}
			if lost := len(report.Lost) > 0; lost {
				l, rec := open(t, keeperOptions(disk))
				if len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "written again, of what the entries of the journal say of 3 redacted entries") {
					t.Errorf("%s: the start says %q", name, rec.Notes)
				}
				testkit.Must(t, l.Close())
			}
		}
		if got := verify(t, disk, dir, journal.VerifyOptions{}).Lost; got != nil {
			t.Errorf("%s: after a start still %q", name, got)
		}
	}
	// The next redaction keeps those of the lost file.
	testkit.Must(t, k.disk.Remove(path))
	l, _ := open(t, keeperOptions(k.disk))
	k.log = l
	testkit.Must(t, k.disk.Remove(path))
	testkit.Must(t, k.redact(t.Context(), 20))
	testkit.Must(t, l.Close())
	report := verify(t, k.disk, dir, journal.VerifyOptions{})
	if !report.OK() || report.Redacted != 4 || report.Lost != nil {
		t.Errorf("after another redaction: %+v", report)
	}
}

// A redacted value is in no file, readers find the entries as before, and Verify accepts only what is vouched for.
func TestRedaction(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 40)
	before := readAll(t, k.disk, 1)
	testkit.Must(t, k.redact(t.Context(), 9))
	testkit.Must(t, k.redact(t.Context(), 14))
	after := readAll(t, k.disk, 1)
	for i, was := range before {
		now := after[i]
		if redacted := i == 8 || i == 13; now.Redacted != redacted || now.Hash != was.Hash || strings.Contains(string(now.Line), secret) == redacted {
			t.Errorf("entry %d: %+v, was %+v", i+1, now, was)
		}
	}
	testkit.Must(t, k.log.Close())
	report := verify(t, k.disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
	if !report.OK() || report.Redacted != 2 || report.VouchedElsewhere != 0 || report.Vouched != report.Head.Seq {
		t.Fatalf("got %+v", report)
	}
	for name, c := range map[string]struct {
		change func(image)
		want   string
	}{
		"altered again": {edit(9, `[redacted]`, `[REDACTED]`), "prev is not the hash of entry 9"},
		"another line":  {edit(10, `"pid":3`, `"pid":4`), "prev is not the hash of entry 10"},
		"altered again, without the file": {func(m image) {
			edit(9, `[redacted]`, `[REDACTED]`)(m)
			delete(m, dir+"/redactions")
		}, "prev is not the hash of entry 9"},
		"voucher of another line": {func(m image) { forge(t, m, 10) }, "does not vouch for that"},
	} {
		m := maps.Clone(image(k.disk.Image()))
		for path := range m {
			m[path] = slices.Clone(m[path])
		}
		c.change(m)
		report := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{})
		if report.OK() || !slices.ContainsFunc(report.Findings, func(e *journal.DamageError) bool { return strings.Contains(e.Reason, c.want) }) {
			t.Errorf("%s: got %v, want %q", name, report.Findings, c.want)
		}
	}
}

// forge rewrites an entry's line with a redaction that is signed with the right key, in a journal without an entry that
// vouches for it.
func forge(t *testing.T, m image, seq uint64) {
	t.Helper()
	disk := faultfs.FromImage(m)
	w, err := journal.PrepareRewrite(t.Context(), disk, dir, seq, func(r *journal.Record) ([]byte, error) {
		return bytes.Replace(r.Line, []byte(secret), []byte(`"pad":"forged"`), 1), nil
	})
	testkit.Must(t, err)
	testkit.Must(t, w.Commit(41, newHostKey(1), 1))
	clear(m)
	maps.Copy(m, disk.Image())
}

// A rewritten line may differ only in request and outcome; a line in the open segment is not rewritten.
func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 40)
	for name, c := range map[string]struct{ old, now string }{
		"seq":    {`"seq":9`, `"seq":8`},
		"pid":    {`"pid":2`, `"pid":3`},
		"prev":   {`"prev":"`, `"prev":"0`},
		"layout": {`,"outcome"`, `, "outcome"`},
		"value":  {secret, `"pad":`},
	} {
		_, err := journal.PrepareRewrite(t.Context(), k.disk, dir, 9, func(r *journal.Record) ([]byte, error) {
			return bytes.Replace(r.Line, []byte(c.old), []byte(c.now), 1), nil
		})
		if err == nil {
			t.Errorf("%s: it was rewritten", name)
		}
	}
	same := func(r *journal.Record) ([]byte, error) { return bytes.Clone(r.Line), nil }
	if _, err := journal.PrepareRewrite(t.Context(), k.disk, dir, 40, same); !errors.Is(err, journal.ErrOpenSegment) {
		t.Errorf("the open segment: %v", err)
	}
	if _, err := journal.PrepareRewrite(t.Context(), k.disk, dir, 41, same); !errors.Is(err, io.EOF) {
		t.Errorf("beyond the end: %v", err)
	}
	testkit.Must(t, k.log.Close())
	held(t, k.disk, 40)
}

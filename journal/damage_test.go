package journal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// ends returns two possible ends of a journal with 13 entries, all of them synced; the last segment has five. In the first
// the checkpoint protects the end, in the second only the head mark does.
func ends(t *testing.T) map[string]image {
	t.Helper()
	closed, killed := faultfs.NewDisk(), faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: closed, SegmentBytes: 2600, Signer: newHostKey(1)})
	grow13(t, l)
	testkit.Must(t, l.Close())
	l, _ = open(t, journal.Options{Dir: dir, FS: killed, SegmentBytes: 2600})
	grow13(t, l)
	signed := image(closed.Image())
	delete(signed, headPath)
	return map[string]image{"closed, signed, no head mark": signed, "killed, not signed": killed.Image()}
}

func grow13(t *testing.T, l *journal.Log) {
	for range 13 {
		grow(t, l, 1)
	}
}

const lastSegment = 9 // first entry of the last segment of ends

// start opens a journal that was tampered with and reports whether it reported a loss or failed. It fails the test if the
// journal is not a prefix of good.
func start(t *testing.T, m, good image) (stated bool) {
	t.Helper()
	disk := faultfs.FromImage(m)
	_, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk})
	if err != nil {
		asDamage(t, err)
		return true
	}
	if !strings.HasPrefix(segments(good), segments(disk.Image())) {
		t.Error("the start found entries that were not written")
	}
	return rec.Cut != nil
}

// The last segment is cut at every byte.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	for name, good := range ends(t) {
		path := segmentPath(lastSegment)
		for n := range good[path] {
			m := image(faultfs.FromImage(good).Image())
			m[path] = m[path][:n]
			if !start(t, m, good) {
				t.Errorf("%s, cut to %d bytes: the start reports no loss", name, n)
			}
		}
		if start(t, good, good) {
			t.Errorf("%s: the start reports a loss of an undamaged journal", name)
		}
	}
}

// Each bit of the last four entries is flipped.
func TestFlipAnything(t *testing.T) {
	t.Parallel()
	for name, good := range ends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := segmentPath(lastSegment)
			m := image(faultfs.FromImage(good).Image())
			for i := bytes.Index(m[path], []byte(`{"seq":10,`)); i < len(m[path]); i++ {
				for bit := range 8 {
					m[path][i] ^= 1 << bit
					if !start(t, m, good) {
						t.Errorf("bit %d of byte %d flipped: the start reports no loss", bit, i)
					}
					m[path][i] ^= 1 << bit
				}
			}
		})
	}
}

// A line without an end is damage like others, found in bounded memory, and a hole without an end is a torn write.
func TestEndlessLines(t *testing.T) {
	t.Parallel()
	const long = journal.MaxLine + 1<<20
	for _, c := range []struct {
		path    string
		content byte
		refused bool
	}{
		{segmentPath(37), 'x', true},
		{segmentPath(37), 0, false},
		{segmentPath(10), 0, true},
		{segmentPath(41), 0, false},
		{checkpointsPath, 'x', true},
	} {
		m := signedJournal(t)
		m[c.path] = append(m[c.path], bytes.Repeat([]byte{c.content}, long)...)
		disk := faultfs.FromImage(m)
		name := fmt.Sprintf("%s, %q", c.path, c.content)
		report := verify(t, disk, dir, journal.VerifyOptions{})
		if report.OK() == c.refused {
			t.Errorf("%s: verify: got %v", name, report.Findings)
		}
		if c.path == segmentPath(37) {
			r := journal.NewReader(disk, dir, journal.ReaderOptions{From: 40})
			_, err := r.Next(t.Context())
			testkit.Must(t, err)
			_, err = r.Next(t.Context())
			asDamage(t, err)
		}
		_, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk})
		if c.refused {
			asDamage(t, err)
		} else if err != nil || rec.Cut.Bytes != long || report.TornBytes != long {
			t.Errorf("%s: got %+v, %v", name, rec, err)
		}
	}
}

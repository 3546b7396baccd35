package journal_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestTampering is every way to tamper, and what is found of it, as "file:line entry reason". The host key is known and
// the checkpoints are there, unless a case says otherwise.
func TestTampering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, image)
		want   []string // how each finding begins
	}{
		"nothing": {tamper(), nil},
		"edit": {
			tamper(edit(12, `"pid":5`, `"pid":0`)),
			[]string{"10:4 13 prev is not the hash of entry 12: that entry was altered"},
		},
		"edit two": {
			tamper(edit(3, `"pid":3`, `"pid":0`), edit(30, `"pid":2`, `"pid":0`)),
			[]string{"1:4 4 prev is not", "28:4 31 prev is not"},
		},
		"edit first": {
			tamper(edit(1, `"pid":1`, `"pid":0`)),
			[]string{"1:2 2 prev is not the hash of entry 1"},
		},
		"edit last": {
			tamper(edit(40, `"pid":5`, `"pid":0`)),
			[]string{"37:4 40 entry 40 is not the one that the head mark vouches for: an entry after 36"},
		},
		"edit a prev": {
			tamper(edit(12, `"prev":"`, `"prev":"0`)),
			[]string{"10:3 12 line is not a journal entry", "10:4 13 prev is not"},
		},
		"edit layout": {
			tamper(edit(12, `,"tick"`, `, "tick"`)),
			[]string{"10:3 12 line is not a journal entry", "10:4 13 prev is not"},
		},
		"reorder": {
			tamper(func(m image) {
				path, i := m.find(12)
				m.splice(path, i, 2, m.line(13), m.line(12))
			}),
			[]string{
				"10:3 13 entry 13 is where entry 12 should be: entries were removed or moved",
				"10:4 12 entry 12 is where entry 14 should be: it was repeated or moved",
				"10:5 14 entry 14 is where entry 13 should be: entries were removed or moved",
			},
		},
		"remove": {
			tamper(func(m image) { m.replace(12) }),
			[]string{"10:3 13 entry 13 is where entry 12 should be: entries were removed"},
		},
		"remove first": {
			tamper(func(m image) { m.replace(1) }),
			[]string{"1:1 2 entry 2 is where entry 1 should be"},
		},
		"remove last of a segment": {
			tamper(func(m image) { m.replace(18) }),
			[]string{"19:0 19 the segment is named after entry 19 where entry 18 follows", "19:1 19 entry 19 is where"},
		},
		"repeat": {
			tamper(func(m image) { m.replace(12, m.line(12), m.line(12)) }),
			[]string{"10:4 12 entry 12 is where entry 13 should be: it was repeated"},
		},
		"remove a segment": {
			tamper(func(m image) { delete(m, segmentPath(10)) }),
			[]string{"19:0 19 the segment is named after entry 19 where entry 10 follows", "19:1 19 entry 19 is where"},
		},
		"rename a segment": {
			tamper(func(m image) {
				m[segmentPath(11)] = m[segmentPath(10)]
				delete(m, segmentPath(10))
			}),
			[]string{"11:0 11 the segment is named after entry 11 where entry 10 follows"},
		},
		"remove a line end": {
			tamper(func(m image) { m[segmentPath(10)] = m[segmentPath(10)][:len(m[segmentPath(10)])-1] }),
			[]string{"10:9 18 the segment does not end with a line end", "19:0 19 the segment is named", "19:1 19 entry"},
		},
		"splice an entry": {
			func(t *testing.T, m image) { m.replace(12, foreign(t).line(12)) },
			[]string{"10:3 12 prev is not the hash of entry 11", "10:4 13 prev is not the hash of entry 12"},
		},
		"splice a segment": {
			func(t *testing.T, m image) { m[segmentPath(10)] = foreign(t)[segmentPath(10)] },
			[]string{
				"10:1 10 prev is not the hash of entry 9: that entry was altered, or this one is from elsewhere",
				"10:8 17 entry 17 is not the one that line 3 of checkpoints", "10:9 18 entry 18 is not", "19:1 19 prev is not",
			},
		},
		"truncate": {
			tamper(func(m image) { m.cutAfter(33) }, noHead),
			[]string{"28:0 34 the journal ends here, but line 9 of checkpoints vouches that entry 40 was on disk"},
		},
		"truncate by one": {
			tamper(func(m image) { m.cutAfter(39) }),
			[]string{"37:0 40 the journal ends here"},
		},
		"truncate to nothing": {
			tamper(func(m image) { m.cutAfter(1) }, func(m image) { delete(m, segmentPath(1)) }),
			[]string{"journal:0 1 the journal ends here"},
		},
		"truncate and continue": {
			func(t *testing.T, m image) {
				m.cutAfter(33)
				m.goOn(t, 9)
			},
			[]string{
				"28:8 35 entry 35 is not the one that line 7 of checkpoints vouches for: an entry after 27 and up to it was " +
					"altered, or the journal was cut before it and continued",
				"28:9 36 entry 36 is not", "37:4 40 entry 40 is not",
			},
		},
		"rebuild": {
			tamper(edit(12, `"pid":5`, `"pid":0`), func(m image) { m.rebuild(12) }),
			[]string{
				"10:8 17 entry 17 is not the one that line 3 of checkpoints vouches for: an entry after 9 and up to it was altered",
				"10:9 18 entry 18", "19:8 26 entry 26", "19:9 27 entry 27", "28:8 35 entry 35", "28:9 36 entry 36", "37:4 40 entry 40",
			},
		},
		"rebuild with another key": {
			func(t *testing.T, m image) {
				edit(12, `"pid":5`, `"pid":0`)(m)
				m.rebuild(12)
				m.sign(t, newHostKey(2))
			},
			[]string{"checkpoints:1 40 the checkpoint is signed with a key that is not trusted"},
		},
		"remove the checkpoints": {
			tamper(func(m image) { delete(m, checkpointsPath) }),
			[]string{"checkpoints:0 0 there is no file of checkpoints"},
		},
		"edit a checkpoint": {
			tamper(func(m image) {
				m.splice(checkpointsPath, 2, 1, strings.Replace(m.lines(checkpointsPath)[2], `:17,`, `:16,`, 1))
			}),
			[]string{"checkpoints:3 16 verify checkpoint: signature does not match"},
		},
		"break a checkpoint": {
			tamper(func(m image) { m.splice(checkpointsPath, 2, 1, "x\n") }),
			[]string{"checkpoints:3 0 line is not a checkpoint"},
		},
		"repeat a checkpoint": {
			tamper(func(m image) { m.splice(checkpointsPath, 2, 0, m.lines(checkpointsPath)[0]) }),
			[]string{"checkpoints:3 8 checkpoint of entry 8 follows that of entry 9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := signedJournal(t)
			c.change(t, m)
			report := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
			for i, e := range report.Findings {
				if got := finding(e); i >= len(c.want) || !strings.HasPrefix(got, c.want[i]) {
					t.Errorf("finding %d: got %q", i, got)
				}
			}
			if len(report.Findings) != len(c.want) || report.OK() != (len(c.want) == 0) {
				t.Errorf("%d findings, want %d", len(report.Findings), len(c.want))
			}
		})
	}
}

// finding puts what was found in the form of the table: a segment by its first entry.
func finding(e *journal.DamageError) string {
	name := strings.TrimLeft(strings.TrimSuffix(filepath.Base(e.File), ".ndjson"), "0")
	return fmt.Sprintf("%s:%d %d %s", name, e.Line, e.Seq, e.Reason)
}

func tamper(changes ...func(image)) func(*testing.T, image) {
	return func(_ *testing.T, m image) {
		for _, change := range changes {
			change(m)
		}
	}
}

func noHead(m image) { delete(m, headPath) }

// foreign is a good journal that is not signedJournal.
func foreign(t *testing.T) image {
	t.Helper()
	m := signedJournal(t)
	edit(5, `"pid":5`, `"pid":0`)(m)
	m.rebuild(6)
	return m
}

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

// ends are two ways in which a journal of 13 entries may have ended, all of them synced; the last segment has five. In the
// first the checkpoint protects the end, in the second nothing but the head mark does.
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

// start opens a journal that was tampered with and reports whether it stated a loss or refused. It fails the test where what
// it found is no prefix of good.
func start(t *testing.T, m, good image) (stated bool) {
	t.Helper()
	disk := faultfs.FromImage(m)
	_, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk})
	if err != nil {
		asDamage(t, err)
		return true
	}
	if !strings.HasPrefix(segments(good), segments(disk.Image())) {
		t.Error("the start found what had not been written")
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
				t.Errorf("%s, cut to %d bytes: silence", name, n)
			}
		}
		if start(t, good, good) {
			t.Errorf("%s: a loss was stated where there is none", name)
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
						t.Errorf("bit %d of byte %d flipped: silence", bit, i)
					}
					m[path][i] ^= 1 << bit
				}
			}
		})
	}
}

// Entries that were written and not synced when the process died may go with what a power cut tears, and nothing else may.
func TestTornTail(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	grow(t, l, 3)
	synced := len(disk.Image()[segmentPath(1)])
	for seq := uint64(4); seq <= 6; seq++ {
		l.Append(entry(seq, 10))
	}
	testkit.Must(t, l.Flush())
	good := image(disk.Image())
	all := good[segmentPath(1)]
	for name, c := range map[string]struct {
		tail  []byte
		after uint64 // 0: refused
	}{
		"whole":                   {all, 6},
		"half a line":             {all[:len(all)-9], 5},
		"no line end":             {all[:len(all)-1], 5},
		"NULs after it":           {append(bytes.Clone(all), make([]byte, 700)...), 6},
		"hole before a line":      {punch(all, synced+10, synced+50), 3},
		"hole over lines":         {punch(all, synced+10, len(all)-20), 3},
		"hole to the end":         {punch(all, synced+10, len(all)), 3},
		"hole in what was synced": {punch(all, synced-50, synced+50), 0},
		"another letter":          {bytes.Replace(all, []byte(`"n":5`), []byte(`"n":6`), 1), 0},
		"an empty line":           {append(bytes.Clone(all), '\n'), 0},
	} {
		m := image(faultfs.FromImage(good).Image())
		m[segmentPath(1)] = c.tail
		disk := faultfs.FromImage(m)
		_, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk})
		if c.after == 0 {
			if damage := asDamage(t, err); damage.Remedy == "" {
				t.Errorf("%s: %v says nothing to do", name, err)
			}
			continue
		}
		if err != nil || rec.Head.Seq != c.after {
			t.Errorf("%s: got %+v, %v, want %d entries", name, rec, err, c.after)
			continue
		}
		left := len(disk.Image()[segmentPath(1)])
		want := &journal.Cut{File: segmentPath(1), Offset: int64(left), Bytes: int64(len(c.tail) - left), After: c.after}
		if name == "whole" {
			want = nil
		}
		if fmt.Sprint(rec.Cut) != fmt.Sprint(want) {
			t.Errorf("%s: got cut %v, want %v", name, rec.Cut, want)
		}
	}
}

// punch puts NULs into a copy of b.
func punch(b []byte, from, to int) []byte {
	b = bytes.Clone(b)
	clear(b[from:to])
	return b
}

// A start refuses what it can see of damage in older segments without reading them: see the rule in the package comment.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(image)
		path   string
		seq    uint64
	}{
		"first segment gone":  {func(m image) { delete(m, segmentPath(1)) }, segmentPath(1), 1},
		"middle segment gone": {func(m image) { delete(m, segmentPath(10)) }, segmentPath(19), 19},
		"last segment gone":   {func(m image) { delete(m, segmentPath(37)) }, segmentPath(28), 37},
		"all segments gone":   {func(m image) { m.cutAfter(1); delete(m, segmentPath(1)) }, segmentPath(1), 1},
		"segment empty":       {func(m image) { m[segmentPath(10)] = nil }, segmentPath(10), 10},
		"segment renamed": {
			func(m image) {
				m[segmentPath(11)] = m[segmentPath(10)]
				delete(m, segmentPath(10))
			},
			segmentPath(11), 11,
		},
		"no line end":         {func(m image) { p := segmentPath(10); m[p] = m[p][:len(m[p])-1] }, segmentPath(10), 0},
		"first entry altered": {edit(10, `"pid":3`, `"pid":x`), segmentPath(10), 10},
		"last entry altered":  {edit(18, `"pid":4`, `"pid":0`), segmentPath(10), 18},
		"last entry broken":   {edit(18, `"pid":4`, `"pid":x`), segmentPath(10), 0},
		"last entry gone":     {func(m image) { m.replace(18) }, segmentPath(19), 19},
		"joint": {
			func(m image) {
				edit(18, `"pid":4`, `"pid":0`)(m)
				delete(m, checkpointsPath)
			},
			segmentPath(19), 19,
		},
		"entry altered":           {edit(38, `"pid":3`, `"pid":0`), segmentPath(37), 39},
		"entry repeated":          {func(m image) { m.replace(38, m.line(38), m.line(38)) }, segmentPath(37), 39},
		"tail cut":                {func(m image) { m.cutAfter(39) }, segmentPath(37), 40},
		"tail cut without head":   {func(m image) { m.cutAfter(38); delete(m, headPath) }, segmentPath(37), 39},
		"tail cut without proofs": {func(m image) { m.cutAfter(38); delete(m, checkpointsPath) }, segmentPath(37), 39},
		"last entry replaced":     {edit(40, `"pid":5`, `"pid":0`), segmentPath(37), 40},
		"checkpoint altered":      {func(m image) { m.splice(checkpointsPath, 2, 1, "x\n") }, checkpointsPath, 0},
		"checkpoint forged": {func(m image) {
			m[checkpointsPath] = bytes.Replace(m[checkpointsPath], []byte(`:40,`), []byte(`:41,`), 1)
		}, checkpointsPath, 41},
	} {
		m := signedJournal(t)
		c.change(m)
		_, _, err := journal.Open(journal.Options{Dir: dir, FS: faultfs.FromImage(m)})
		damage := asDamage(t, err)
		if damage.File != c.path || damage.Seq != c.seq || damage.Remedy == "" {
			t.Errorf("%s: got %v, want entry %d of %s", name, damage, c.seq, c.path)
		}
	}
}

// A last segment without an entry hides nothing: the one before it is read in full then.
func TestStartAfterRotation(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"", `{"seq":41`, "\x00\x00\x00\n"} {
		m := signedJournal(t)
		m[segmentPath(41)] = []byte(last)
		disk := faultfs.FromImage(m)
		l, rec := open(t, journal.Options{Dir: dir, FS: disk})
		if rec.Head.Seq != 40 || rec.Segments != 6 || (rec.Cut != nil) != (last != "") {
			t.Errorf("%q: got %+v", last, rec)
		}
		grow(t, l, 1)
		testkit.Must(t, l.Close())
		edit(38, `"pid":3`, `"pid":0`)(m)
		_, _, err := journal.Open(journal.Options{Dir: dir, FS: faultfs.FromImage(m)})
		if damage := asDamage(t, err); damage.Seq != 39 {
			t.Errorf("%q: got %v", last, damage)
		}
	}
}

// What is lost or torn of the files beside the segments is made good, or noted, and no more.
func TestStartWithoutTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(image)
		notes  int
	}{
		"nothing":            {func(image) {}, 0},
		"no head":            {func(m image) { delete(m, headPath) }, 0},
		"head torn":          {func(m image) { m[headPath] = m[headPath][:20] }, 1},
		"head altered":       {func(m image) { m[headPath][19]-- }, 1},
		"head too long":      {func(m image) { m[headPath] = append(m[headPath], 'x') }, 1},
		"head of NULs":       {func(m image) { clear(m[headPath]) }, 1},
		"no checkpoints":     {func(m image) { delete(m, checkpointsPath) }, 0},
		"checkpoint torn":    {func(m image) { m[checkpointsPath] = append(m[checkpointsPath], `{"seq":4`...) }, 0},
		"checkpoint hole":    {func(m image) { m[checkpointsPath] = append(m[checkpointsPath], "\x00\x00\x00}\n"...) }, 0},
		"checkpoint of NULs": {func(m image) { m[checkpointsPath] = append(m[checkpointsPath], "\x00\x00"...) }, 0},
		"another file":       {func(m image) { m[dir+"/1.ndjson"] = []byte("x") }, 0},
	} {
		m := signedJournal(t)
		good := len(m[checkpointsPath])
		c.change(m)
		disk := faultfs.FromImage(m)
		l, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk, Signer: newHostKey(1)})
		if err != nil || rec.Head.Seq != 40 || len(rec.Notes) != c.notes {
			t.Errorf("%s: got %+v, %v", name, rec, err)
			continue
		}
		if torn := strings.HasPrefix(name, "checkpoint "); (rec.CheckpointCut > 0) != torn {
			t.Errorf("%s: %d bytes of checkpoints cut", name, rec.CheckpointCut)
		}
		if left := disk.Crash(nil, faultfs.LoseAll).Image()[checkpointsPath]; len(left) != good && name != "no checkpoints" {
			t.Errorf("%s: the cut is not durable: %d bytes of checkpoints, want %d", name, len(left), good)
		}
		testkit.Must(t, l.Close())
		report := verify(t, disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
		if !report.OK() || report.Vouched != 40 {
			t.Errorf("%s: after that: %+v", name, report)
		}
		l, rec = open(t, journal.Options{Dir: dir, FS: disk, Signer: newHostKey(2)})
		if rec.Vouched != 40 || len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "another key") {
			t.Errorf("%s: with another key: %+v", name, rec)
		}
		testkit.Must(t, l.Close())
	}
}

// A line without an end is damage like any other, in bounded memory, and a hole without an end is a torn write.
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

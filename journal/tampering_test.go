package journal_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestTampering runs the files of testdata. A case is "tamper", lines that change a good journal, and the result: what
// verify finds, and what a start does. With -rewrite it records the result instead. The good journal is signedJournal, or,
// with the argument unsynced, the one of that name. A LINE is that of an entry, such as 12, or checkpoints:3; a FILE is head, checkpoints
// or a segment, such as 10.ndjson. The changes:
//
//	edit LINE OLD NEW     replaces words of a line, and leaves its hash
//	swap ENTRY            swaps it with the next
//	copy LINE BEFORE      repeats a line before another
//	cut FILE LENGTH       keeps LENGTH bytes; if it is negative, removes that many
//	zero FILE FROM [TO]   puts NULs there; a negative number is from the end
//	append FILE "TEXT"    makes the file if there is none
//	rename FILE FILE
//	remove LINE|FILE
//	remove-after LINE     removes all entries, or checkpoints, after it
//	take LINE|FILE        replaces it with that of another valid journal
//	rebuild ENTRY         makes the chain valid again from there on, without the key
//	continue N            lets a kernel without the key append entries, despite the checkpoints
//	sign N                replaces all checkpoints with one of another key
//
// Further arguments: key=N is the key with which the kernel starts; limits shows what verify cannot detect, and what it finds
// with the last good checkpoint kept outside.
func TestTampering(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	testkit.Must(t, err)
	signed, other := signedJournal(t), foreign(t)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				good := signed
				if d.HasArg("unsynced") {
					good = unsynced(t)
				}
				m := image(faultfs.FromImage(good).Image())
				for line := range strings.Lines(d.Input) {
					m.change(t, other, strings.SplitN(strings.TrimSpace(line), " ", 4))
				}
				key := 1
				d.MaybeScanArgs(t, "key", &key)
				seen := m.verified(t, d.HasArg("limits"), checkpoints(t, faultfs.FromImage(signed)))
				return seen + m.started(t, byte(key))
			})
		})
	}
}

// unsynced returns a journal whose last three entries were written and not synced when its process died.
func unsynced(t *testing.T) image {
	t.Helper()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	grow(t, l, 3)
	for seq := uint64(4); seq <= 6; seq++ {
		l.Append(entry(seq, 10))
	}
	testkit.Must(t, l.Flush())
	return disk.Image()
}

// foreign returns a valid journal other than signedJournal.
func foreign(t *testing.T) image {
	t.Helper()
	m := signedJournal(t)
	m.replace(5, strings.Replace(m.line(5), `"pid":5`, `"pid":0`, 1))
	m.rebuild(6)
	return m
}

// change applies a change, given as its word and up to three arguments.
func (m image) change(t *testing.T, other image, words []string) {
	t.Helper()
	number := func(i int) int { return testkit.Value(strconv.Atoi(words[i]))(t) }
	path := filePath(words[1])
	offset := func(i int) int {
		if n := number(i); n < 0 {
			return len(m[path]) + n
		} else {
			return n
		}
	}
	switch words[0] {
	case "edit":
		path, i := m.place(t, words[1])
		m.splice(path, i, 1, strings.Replace(m.lines(path)[i], words[2], words[3], 1))
	case "swap":
		path, i := m.find(number(1))
		m.splice(path, i, 2, m.lines(path)[i+1], m.lines(path)[i])
	case "copy":
		from, i := m.place(t, words[1])
		to, j := m.place(t, words[2])
		m.splice(to, j, 0, m.lines(from)[i])
	case "cut":
		m[path] = m[path][:offset(2)]
	case "zero":
		to := len(m[path])
		if len(words) > 3 {
			to = offset(3)
		}
		m[path] = punch(m[path], offset(2), to)
	case "append":
		m[path] = append(m[path], testkit.Value(strconv.Unquote(strings.Join(words[2:], " ")))(t)...)
	case "rename":
		m[filePath(words[2])] = m[path]
		delete(m, path)
	case "remove":
		if _, ok := m[path]; ok {
			delete(m, path)
			return
		}
		path, i := m.place(t, words[1])
		m.splice(path, i, 1)
	case "remove-after":
		if path, i := m.place(t, words[1]); path == checkpointsPath {
			m.splice(path, i+1, len(m.lines(path))-i-1)
			return
		}
		m.cutAfter(number(1))
	case "take":
		if _, ok := m[path]; ok {
			m[path] = other[path]
			return
		}
		m.replace(number(1), other.line(number(1)))
	case "rebuild":
		m.rebuild(number(1))
	case "continue":
		m.goOn(t, number(1))
	case "sign":
		m.sign(t, newHostKey(byte(number(1))))
	default:
		t.Fatalf("no change %q", words[0])
	}
}

// filePath returns the path of a file that a case names.
func filePath(name string) string {
	if first, ok := strings.CutSuffix(name, ".ndjson"); ok {
		if n, err := strconv.ParseUint(first, 10, 64); err == nil {
			return segmentPath(n)
		}
	}
	return dir + "/" + name
}

// fileName returns the name of a path in a case.
func fileName(path string) string {
	return strings.TrimLeft(filepath.Base(path), "0")
}

// place finds a line that a case names.
func (m image) place(t *testing.T, line string) (path string, index int) {
	t.Helper()
	name, number, ok := strings.Cut(line, ":")
	if !ok {
		return m.find(testkit.Value(strconv.Atoi(line))(t))
	}
	return filePath(name), testkit.Value(strconv.Atoi(number))(t) - 1
}

// punch returns a copy of b with NULs in it.
func punch(b []byte, from, to int) []byte {
	b = bytes.Clone(b)
	clear(b[from:to])
	return b
}

// verified returns the findings of Verify.
func (m image) verified(t *testing.T, limits bool, kept []journal.Checkpoint) string {
	t.Helper()
	var b strings.Builder
	o := journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}}
	report := verify(t, faultfs.FromImage(m), dir, o)
	if report.OK() {
		fmt.Fprintf(&b, "verify: %d entries, %d vouched for\n", report.Entries, report.Vouched)
	}
	if report.TornBytes > 0 {
		fmt.Fprintf(&b, "verify: %s ends with %d bytes of a write\n", fileName(report.TornFile), report.TornBytes)
	}
	for _, e := range report.Findings {
		fmt.Fprintf(&b, "verify: %s\n", finding(e))
	}
	if limits {
		for _, limit := range report.Limits() {
			fmt.Fprintf(&b, "limit: %s\n", limit)
		}
		o.Known = kept[len(kept)-1:]
		report = verify(t, faultfs.FromImage(m), dir, o)
		for _, e := range report.Findings {
			fmt.Fprintf(&b, "with the last checkpoint: %s\n", finding(e))
		}
		for _, limit := range report.Limits() {
			fmt.Fprintf(&b, "limit with the last checkpoint: %s\n", limit)
		}
	}
	return b.String()
}

// started returns the result of a start. What it cuts off does not come back, and if Verify found nothing before, it finds
// nothing afterwards.
func (m image) started(t *testing.T, key byte) string {
	t.Helper()
	var b strings.Builder
	disk := faultfs.FromImage(m)
	l, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk, Signer: newHostKey(key)})
	if err != nil {
		damage := asDamage(t, err)
		if damage.Remedy == "" {
			t.Errorf("the error %v has no fix", err)
		}
		return fmt.Sprintf("start: refused: %s\n", finding(damage))
	}
	fmt.Fprintf(&b, "start: %d entries", rec.Head.Seq)
	if c := rec.Cut; c != nil {
		fmt.Fprintf(&b, ", cuts %d bytes off %s after entry %d", c.Bytes, fileName(c.File), c.After)
		if left := len(disk.Image()[c.File]); c.Offset != int64(left) {
			t.Errorf("%+v: the file has %d bytes", c, left)
		}
	}
	if rec.CheckpointCut > 0 {
		fmt.Fprintf(&b, ", cuts %d bytes off checkpoints", rec.CheckpointCut)
	}
	b.WriteByte('\n')
	for _, note := range rec.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	crashed := disk.Crash(nil, faultfs.LoseAll)
	testkit.Must(t, l.Close())
	again, rec := open(t, journal.Options{Dir: dir, FS: crashed, Signer: newHostKey(key)})
	if rec.Cut != nil || rec.CheckpointCut > 0 {
		t.Errorf("what was cut is back after a power cut: %+v", rec)
	}
	grow(t, again, 1)
	testkit.Must(t, again.Close())
	if before, after := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{}), verify(t, crashed, dir, journal.VerifyOptions{}); before.OK() && !after.OK() {
		t.Errorf("after the start: %v", after.Findings)
	}
	return b.String()
}

// finding formats a finding for the cases.
func finding(e *journal.DamageError) string {
	where := fileName(e.File)
	if e.Line > 0 {
		where += fmt.Sprintf(":%d", e.Line)
	}
	if e.Seq > 0 {
		where += fmt.Sprintf(", entry %d", e.Seq)
	}
	return where + ": " + e.Reason
}

package journal_test

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// killed returns the files of a process that died with n entries, all of them answered, and the length without the last
// entry.
func killed(t *testing.T, n int) (m image, before int) {
	t.Helper()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	for range n {
		before = len(disk.Image()[segmentPath(1)])
		grow(t, l, 1)
	}
	return disk.Image(), before
}

// A torn last line is cut wherever it is torn, also if the head mark covers the whole line. The cut is reported, and the
// journal continues after the previous line.
func TestTornAnsweredLine(t *testing.T) {
	t.Parallel()
	for _, entries := range []int{1, 2, 6} {
		good, before := killed(t, entries)
		for n := before + 1; n < len(good[segmentPath(1)]); n++ {
			m := image(faultfs.FromImage(good).Image())
			m[segmentPath(1)] = m[segmentPath(1)][:n]
			disk := faultfs.FromImage(m)
			l, rec := open(t, journal.Options{Dir: dir, FS: disk})
			want := journal.Cut{
				File: segmentPath(1), Offset: int64(before), Bytes: int64(n - before), After: uint64(entries - 1), Answered: true,
			}
			if rec.Cut == nil || *rec.Cut != want || rec.Head.Seq != want.After {
				t.Fatalf("%d entries, cut to %d bytes: got %+v, %+v, want %+v", entries, n, rec, rec.Cut, want)
			}
			grow(t, l, 2)
			testkit.Must(t, l.Close())
			report := verify(t, disk, dir, journal.VerifyOptions{})
			if !report.OK() || report.Head.Seq != want.After+2 {
				t.Fatalf("%d entries, cut to %d bytes: got %+v", entries, n, report)
			}
		}
	}
}

// Only that torn line is dropped.
func TestAnsweredIsNotGivenUp(t *testing.T) {
	t.Parallel()
	good, before := killed(t, 6)
	signed := signedJournal(t)
	for name, m := range map[string]image{
		"whole line gone":         {segmentPath(1): good[segmentPath(1)][:before], headPath: good[headPath]},
		"line before torn":        {segmentPath(1): good[segmentPath(1)][:before-9], headPath: good[headPath]},
		"something else there":    {segmentPath(1): append(bytes.Clone(good[segmentPath(1)][:before]), "{}"...), headPath: good[headPath]},
		"hole in it":              {segmentPath(1): append(bytes.Clone(good[segmentPath(1)][:before+30]), 0, 0), headPath: good[headPath]},
		"a checkpoint vouches":    signed,
		"a checkpoint, no mark":   signed,
		"first line of a segment": signed,
	} {
		m := image(faultfs.FromImage(m).Image())
		switch name {
		case "a checkpoint, no mark":
			delete(m, headPath)
			fallthrough
		case "a checkpoint vouches":
			p := segmentPath(37)
			m[p] = m[p][:len(m[p])-9]
		case "first line of a segment":
			p := segmentPath(37)
			m[p] = m[p][:20]
		}
		was := image(faultfs.FromImage(m).Image())
		disk := faultfs.FromImage(m)
		_, _, err := journal.Open(journal.Options{Dir: dir, FS: disk})
		if damage := asDamage(t, err); damage.Remedy == "" {
			t.Errorf("%s: the error %v has no fix", name, err)
		}
		if segments(disk.Image()) != segments(was) {
			t.Errorf("%s: the refusal changed the segments", name)
		}
	}
}

// A start that drops such a line may be killed at any point: the next one finds the same entries.
func TestGivingUpALineFailsOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, entries := range []int{1, 6} {
		good, before := killed(t, entries)
		good[segmentPath(1)] = good[segmentPath(1)][:before+40]
		for _, fault := range []faultfs.Fault{{Err: syscall.EIO}, {Err: syscall.ENOSPC, Short: true}} {
			for n, last := 1, 1; n <= last; n++ {
				fault.N = n
				disk := faultfs.FromImage(good)
				fsys := faultfs.NewFailing(disk, fault)
				_, _, _ = journal.Open(journal.Options{Dir: dir, FS: fsys})
				if fsys.Hit() != "" {
					last = n + 1
				}
				for outcome := range faultfs.Outcomes {
					_, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk.Crash(r, faultfs.Outcome(outcome))})
					if err != nil || rec.Head.Seq != uint64(entries-1) {
						t.Fatalf("%d entries, %v at operation %d (%s), outcome %d: got %+v, %v",
							entries, fault.Err, n, fsys.Hit(), outcome, rec, err)
					}
				}
			}
		}
	}
}

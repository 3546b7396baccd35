package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const archiveDir = "/archive"

// secret is what redactions in these tests remove.
const secret = `"pad":"0000000000"`

// keeper is a journal of many segments that is archived and redacted.
type keeper struct {
	disk *faultfs.Disk
	fsys journal.FS
	log  *journal.Log
}

func newKeeper(t testing.TB, entries int) *keeper {
	t.Helper()
	k := &keeper{disk: faultfs.NewDisk()}
	k.open(t, k.disk)
	for range entries {
		grow(t, k.log, 1)
		testkit.Must(t, k.log.Checkpoint())
	}
	return k
}

func keeperOptions(fsys journal.FS) journal.Options {
	return journal.Options{Dir: dir, FS: fsys, SegmentBytes: 3150, Signer: newHostKey(1), CheckpointEvery: 8, Now: clock}
}

func (k *keeper) open(t testing.TB, fsys journal.FS) *journal.Recovery {
	t.Helper()
	var rec *journal.Recovery
	k.fsys = fsys
	k.log, rec = open(t, keeperOptions(fsys))
	return rec
}

// archive takes all steps of an archiving.
func (k *keeper) archive(ctx context.Context, before uint64, to string) error {
	a, err := journal.PlanArchive(k.fsys, dir, before, 0)
	if err != nil || a == nil {
		return err
	}
	if err := a.Copy(ctx, to); err != nil {
		return err
	}
	anchor := &journal.Anchor{Head: a.Head, Tick: 3, Time: clock().UnixMilli(), Form: "test", Archive: to}
	err = journal.WriteAnchor(k.fsys, dir, anchor, newHostKey(1), func(put func(string, []byte) error) error {
		return errors.Join(put("memory", fmt.Appendf(nil, "state of %d", a.Seq)), put("keys", nil))
	})
	if err != nil {
		return err
	}
	return a.Remove()
}

// redact takes all steps of a redaction, and returns the entry that vouches for it.
func (k *keeper) redact(ctx context.Context, seq uint64) error {
	if _, err := k.log.EndSegment(); err != nil {
		return err
	}
	w, err := journal.PrepareRewrite(ctx, k.fsys, dir, seq, func(r *journal.Record) ([]byte, error) {
		return bytes.Replace(r.Line, []byte(secret), []byte(`"pad":"[redacted]"`), 1), nil
	})
	if err != nil {
		return err
	}
	by := k.log.Append(voucher(w.Seq, w.Old.String(), w.New.String()))
	if err := k.log.Flush(); err != nil {
		return err
	}
	if _, err := k.log.Sync(); err != nil {
		return err
	}
	return w.Commit(by, newHostKey(1), clock().UnixMilli())
}

func voucher(seq uint64, before, after string) *journal.Entry {
	e := entry(1, 1)
	e.PID = 0
	e.Request = fmt.Appendf(nil, `{"kind":"command","type":"Audit.Redacted","data":{"seq":%d,"member":"/request/data/pad","old":"%s","new":"%s"},`+
		`"metadata":{"id":"x","timestamp":1}}`, seq, before, after)
	e.Outcome = []byte(`{"kind":"reply","data":null}`)
	return e
}

// held checks what must be true after any crash: a start succeeds, and all entries are in the journal and its archive.
func held(t *testing.T, disk *faultfs.Disk, least uint64) (anchor *journal.Anchor) {
	t.Helper()
	l, rec, err := journal.Open(keeperOptions(disk))
	testkit.Must(t, err)
	if rec.Head.Seq < least {
		t.Fatalf("the journal ends with entry %d, want %d", rec.Head.Seq, least)
	}
	grow(t, l, 1)
	testkit.Must(t, l.Close())
	whole := verify(t, disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
	if !whole.OK() {
		t.Fatalf("verify: %v", whole.Findings[0])
	}
	if rec.Anchor == nil {
		if whole.Anchor != nil || whole.Entries != rec.Head.Seq+1 {
			t.Fatalf("without an anchor: %+v", whole)
		}
		return nil
	}
	var state []string
	testkit.Must(t, rec.Anchor.LoadState(t.Context(), disk, dir, func(part string, chunk []byte) error {
		state = append(state, part+"="+string(chunk))
		return nil
	}))
	if want := []string{fmt.Sprintf("memory=state of %d", rec.Anchor.Seq), "keys="}; !slices.Equal(state, want) {
		t.Fatalf("state %q, want %q", state, want)
	}
	both := verify(t, disk, dir, journal.VerifyOptions{Archives: []string{archiveDir}})
	alone := verify(t, disk, archiveDir, journal.VerifyOptions{})
	if !both.OK() || both.Entries != rec.Head.Seq+1 || both.Anchor != nil || !alone.OK() || alone.Head.Seq < rec.Anchor.Seq {
		t.Fatalf("both: %v, %+v\nonly the archive: %+v", both.Findings, both, alone)
	}
	return rec.Anchor
}

// The power is cut, or the process dies, at each operation of two archivings: every entry is in at least one place, and a
// start finds all of them valid.
func TestArchiveCutAnywhere(t *testing.T) {
	t.Parallel()
	cutAnywhere(t, func(t *testing.T, k *keeper) {
		testkit.Must(t, k.archive(t.Context(), 12, archiveDir))
		testkit.Must(t, k.archive(t.Context(), 30, archiveDir))
	}, func(t *testing.T, disk *faultfs.Disk) { held(t, disk, 40) })
}

// cutAnywhere runs work, and runs check on the disk after a crash at each of its operations.
func cutAnywhere(t *testing.T, work func(*testing.T, *keeper), check func(*testing.T, *faultfs.Disk)) {
	t.Helper()
	k := newKeeper(t, 40)
	r := rand.New(rand.NewPCG(1, 1))
	var cuts []*faultfs.Disk
	k.disk.Hook = func(faultfs.Op) {
		for how := range faultfs.Outcome(faultfs.Outcomes) {
			cuts = append(cuts, k.disk.Crash(r, how))
		}
	}
	work(t, k)
	k.disk.Hook = nil
	testkit.Must(t, k.log.Close())
	for _, disk := range append(cuts, k.disk.Crash(r, faultfs.LoseAll)) {
		check(t, disk)
	}
}

// Each operation of an archiving and of a redaction fails once: the journal stays valid, and a retry succeeds.
func TestKeepingFailsOnce(t *testing.T) {
	t.Parallel()
	for n, last := 0, 1; n <= last; n++ {
		k := newKeeper(t, 40)
		testkit.Must(t, k.log.Close())
		fsys := faultfs.NewFailing(k.disk, faultfs.Fault{})
		k.open(t, fsys)
		fsys.Arm(faultfs.Fault{N: n, Err: syscall.EIO, Short: n%2 == 0})
		err := errors.Join(k.redact(t.Context(), 5), k.archive(t.Context(), 12, archiveDir))
		if n == 0 {
			testkit.Must(t, err)
			last = fsys.Count()
		}
		_ = k.log.Close() // it may have stopped
		k.open(t, k.disk)
		testkit.Must(t, k.redact(t.Context(), 20))
		testkit.Must(t, k.archive(t.Context(), 12, archiveDir))
		testkit.Must(t, k.log.Close())
		if anchor := held(t, k.disk, 41); anchor == nil || anchor.Seq != 9 {
			t.Fatalf("operation %d (%s) failed: anchor %+v", n, fsys.Hit(), anchor)
		}
	}
}

// Archived entries are distinguished from missing ones, and a reader without a From starts after them.
func TestArchived(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 40)
	whole := readAll(t, k.disk, 1)
	r := journal.NewReader(k.disk, dir, journal.ReaderOptions{})
	_, err := r.Next(t.Context())
	testkit.Must(t, err) // a reader that has started
	testkit.Must(t, k.archive(t.Context(), 20, archiveDir))
	for err == nil {
		_, err = r.Next(t.Context())
	}
	testkit.Must(t, r.Close())
	wantArchived(t, err, 18)
	late := readAll(t, k.disk, 0)
	if len(late) != 22 || late[0].Seq != 19 || late[0].Prev != whole[17].Hash {
		t.Errorf("read %d entries from %d on", len(late), late[0].Seq)
	}
	r = journal.NewReader(k.disk, dir, journal.ReaderOptions{From: 18})
	_, err = r.Next(t.Context())
	wantArchived(t, err, 18)
	testkit.Must(t, r.Close())
	if _, err := journal.PrepareRewrite(t.Context(), k.disk, dir, 3, nil); !errors.Is(err, fault.JournalArchived) {
		t.Errorf("rewriting an archived entry: %v", err)
	}
	if a, err := journal.PlanArchive(k.disk, dir, 20, 0); a != nil || err != nil {
		t.Errorf("archived again: %+v, %v", a, err)
	}
	if a, err := journal.PlanArchive(k.disk, dir, 0, 1735000000000+37); err != nil || a == nil || a.Seq != 36 {
		t.Errorf("by age: %+v, %v", a, err)
	}
	testkit.Must(t, k.archive(t.Context(), 30, "/elsewhere"))
	testkit.Must(t, k.log.Close())
	report := verify(t, k.disk, dir, journal.VerifyOptions{Archives: []string{archiveDir, "/elsewhere"}})
	if !report.OK() || report.Entries != 40 || report.Anchor != nil {
		t.Errorf("three directories: %+v", report)
	}
	report = verify(t, k.disk, "/elsewhere", journal.VerifyOptions{})
	if !report.OK() || report.Anchor == nil || report.Anchor.Seq != 18 || report.Head.Seq != 27 {
		t.Errorf("only the second archive: %+v", report)
	}
	report = verify(t, k.disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(2).Public()}})
	if report.OK() || len(report.Unknown) != 1 {
		t.Errorf("with another key: %+v", report)
	}
}

func wantArchived(t *testing.T, err error, through uint64) {
	t.Helper()
	gone, ok := errors.AsType[*journal.ArchivedError](err)
	if !ok || gone.Anchor.Seq != through || gone.Anchor.Archive != archiveDir || !errors.Is(err, fault.JournalArchived) {
		t.Errorf("got %v, want it archived through %d", err, through)
	}
}

// A directory with other files is refused, and so is damage in between.
func TestArchiveRefuses(t *testing.T) {
	t.Parallel()
	other := newKeeper(t, 40)
	for name, refused := range map[string]func(t *testing.T, k *keeper){
		"the journal itself": func(t *testing.T, k *keeper) {
			a, err := journal.PlanArchive(k.fsys, dir, 20, 0)
			testkit.Must(t, err)
			if err := a.Copy(t.Context(), dir); !errors.Is(err, journal.ErrLocked) {
				t.Errorf("got %v", err)
			}
		},
		"another journal's archive": func(t *testing.T, k *keeper) {
			testkit.Must(t, k.archive(t.Context(), 20, archiveDir))
			put(t, k.disk, archiveDir+"/00000000000000000010.ndjson", other.disk.Image()[segmentPath(1)])
			if err := k.archive(t.Context(), 30, archiveDir); !errors.Is(err, fault.JournalForeign) {
				t.Errorf("got %v", err)
			}
		},
		"a segment that nobody knows": func(t *testing.T, k *keeper) {
			testkit.Must(t, k.disk.Mkdir(archiveDir))
			put(t, k.disk, archiveDir+"/00000000000000000007.ndjson", []byte("x\n"))
			if err := k.archive(t.Context(), 20, archiveDir); !errors.Is(err, fault.JournalForeign) {
				t.Errorf("got %v", err)
			}
		},
		"damage": func(t *testing.T, k *keeper) {
			f, err := k.disk.Create(segmentPath(10))
			testkit.Must(t, err)
			_, err = f.WriteAt([]byte("x"), 900)
			testkit.Must(t, errors.Join(err, f.Close()))
			if err := k.archive(t.Context(), 20, archiveDir); !errors.Is(err, fault.StateDamaged) {
				t.Errorf("got %v", err)
			}
			if a, err := journal.ReadAnchor(k.disk, dir); a != nil || err != nil {
				t.Errorf("there is an anchor: %+v, %v", a, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, newKeeper(t, 40)) })
	}
}

// A changed anchor or state stops the start, or is reported.
func TestAnchorDamage(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 40)
	testkit.Must(t, k.archive(t.Context(), 20, archiveDir))
	testkit.Must(t, k.log.Close())
	state := dir + "/00000000000000000018.state"
	for name, change := range map[string]func(image){
		"another seq": func(m image) {
			m[dir+"/anchor"] = bytes.Replace(m[dir+"/anchor"], []byte(`"seq":18`), []byte(`"seq":27`), 1)
		},
		"another archive": func(m image) {
			m[dir+"/anchor"] = bytes.Replace(m[dir+"/anchor"], []byte(`/archive`), []byte(`/elsewhe`), 1)
		},
		"cut":   func(m image) { m[dir+"/anchor"] = m[dir+"/anchor"][:50] },
		"empty": func(m image) { m[dir+"/anchor"] = nil },
		"no next segment": func(m image) {
			for first := range uint64(41) {
				delete(m, segmentPath(first))
			}
		},
		"no anchor": func(m image) { delete(m, dir+"/anchor") },
	} {
		m := image(k.disk.Image())
		change(m)
		if _, _, err := journal.Open(keeperOptions(faultfs.FromImage(m))); err == nil || !errors.Is(err, fault.StateDamaged) {
			t.Errorf("%s: opened with %v", name, err)
		}
		if report := verify(t, faultfs.FromImage(m), dir, journal.VerifyOptions{}); report.OK() {
			t.Errorf("%s: verified", name)
		}
	}
	for name, change := range map[string]func(image){
		"state altered": func(m image) { m[state][9] ^= 1 },
		"state cut":     func(m image) { m[state] = m[state][:9] },
		"no state":      func(m image) { delete(m, state) },
	} {
		m := image(k.disk.Image())
		change(m)
		disk := faultfs.FromImage(m)
		report := verify(t, disk, dir, journal.VerifyOptions{})
		if report.OK() || report.Findings[0].File != state {
			t.Errorf("%s: %+v", name, report.Findings)
		}
		anchor, err := journal.ReadAnchor(disk, dir)
		testkit.Must(t, err)
		if err := anchor.LoadState(t.Context(), disk, dir, func(string, []byte) error { return nil }); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// readAll returns copies of the entries from one on.
func readAll(t *testing.T, fsys journal.FS, from uint64) (all []journal.Record) {
	t.Helper()
	r := journal.NewReader(fsys, dir, journal.ReaderOptions{From: from})
	defer r.Close()
	for {
		rec, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		testkit.Must(t, err)
		c := *rec
		c.Line = slices.Clone(rec.Line)
		all = append(all, c)
	}
}

func put(t *testing.T, disk *faultfs.Disk, path string, text []byte) {
	t.Helper()
	f, err := disk.Create(path)
	testkit.Must(t, err)
	testkit.Must(t, f.Truncate(0))
	_, err = f.WriteAt(text, 0)
	testkit.Must(t, errors.Join(err, f.Sync(), f.Close()))
}

// The journal can read the entry that the kernel writes to vouch for a redaction.
func TestVoucherIsOfTheTable(t *testing.T) {
	t.Parallel()
	e := voucher(3, strings.Repeat("0", 64), strings.Repeat("1", 64))
	msg, failure := schema.Decode(e.Request, schema.OsMessage)
	if failure != nil || msg.Type != schema.AuditRedacted.Type {
		t.Fatalf("%v, %+v", failure, msg)
	}
}

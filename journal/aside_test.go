package journal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestSetAside removes entries at the end of a segment, within one, all of them and none. The journal continues after the
// remaining ones, and the removed ones are in a separate directory.
func TestSetAside(t *testing.T) {
	t.Parallel()
	for _, after := range []uint64{0, 1, 8, 9, 10, 17, 39, 40} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, 40)
			testkit.Must(t, k.log.Close())
			all := readAll(t, k.disk, 1)
			aside := testkit.Value(journal.SetAside(t.Context(), k.disk, dir, headOf(all, after)))(t)
			if want := after < 40; (aside != "") != want {
				t.Fatalf("set aside in %q", aside)
			}
			if want := fmt.Sprintf("/diverged-%d-", after+1); aside != "" && !strings.Contains(aside, want) {
				t.Errorf("set aside in %q, want %s", aside, want)
			}
			checkAside(t, k.disk, all, after)
			k.open(t, k.disk)
			grow(t, k.log, 30)
			testkit.Must(t, k.log.Close())
			if whole := verify(t, k.disk, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}}); !whole.OK() || whole.Entries != after+30 {
				t.Errorf("verify: %v, %d entries", whole.Findings, whole.Entries)
			}
		})
	}
}

// TestSetAsideCutAnywhere ends the process, or cuts the power, at each operation: the journal opens, no entry is lost, and
// the next attempt succeeds.
func TestSetAsideCutAnywhere(t *testing.T) {
	t.Parallel()
	const after = 13
	k := newKeeper(t, 40)
	testkit.Must(t, k.log.Close())
	all := readAll(t, k.disk, 1)
	r := rand.New(rand.NewPCG(1, 1))
	var cuts []*faultfs.Disk
	k.disk.Hook = func(faultfs.Op) {
		for how := range faultfs.Outcome(faultfs.Outcomes) {
			cuts = append(cuts, k.disk.Crash(r, how))
		}
	}
	testkit.Value(journal.SetAside(t.Context(), k.disk, dir, headOf(all, after)))(t)
	k.disk.Hook = nil
	for _, disk := range append(cuts, k.disk.Crash(r, faultfs.LoseAll)) {
		l, rec := open(t, keeperOptions(disk))
		if rec.Head.Seq < after {
			t.Fatalf("the journal ends with entry %d", rec.Head.Seq)
		}
		testkit.Must(t, l.Close())
		testkit.Value(journal.SetAside(t.Context(), disk, dir, headOf(all, after)))(t)
		checkAside(t, disk, all, after)
		l, rec = open(t, keeperOptions(disk))
		if rec.Head != headOf(all, after) {
			t.Fatalf("the journal ends with %+v", rec.Head)
		}
		testkit.Must(t, l.Close())
	}
}

// TestSetAsideRefuses shows that nothing changes if the journal does not have the entry, or is open for writing.
func TestSetAsideRefuses(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, 5)
	all := readAll(t, k.disk, 1)
	if _, err := journal.SetAside(t.Context(), k.disk, dir, headOf(all, 3)); err == nil {
		t.Error("entries of a journal that is open were set aside")
	}
	testkit.Must(t, k.log.Close())
	for _, at := range []journal.Head{{Seq: 3, Hash: all[3].Hash}, {Seq: 6, Hash: all[4].Hash}} {
		if _, err := journal.SetAside(t.Context(), k.disk, dir, at); err == nil {
			t.Errorf("entries after %+v were set aside", at)
		}
	}
	if n := len(readAll(t, k.disk, 1)); n != 5 {
		t.Errorf("%d entries are left", n)
	}
}

func headOf(all []journal.Record, seq uint64) journal.Head {
	if seq == 0 {
		return journal.Head{}
	}
	return journal.Head{Seq: seq, Hash: all[seq-1].Hash}
}

// checkAside fails the test unless the journal has the entries up to after, and the files set aside have the others.
func checkAside(t *testing.T, disk *faultfs.Disk, all []journal.Record, after uint64) {
	t.Helper()
	if left := readAll(t, disk, 1); uint64(len(left)) != after {
		t.Fatalf("%d entries are left, want %d", len(left), after)
	}
	var aside []byte
	for path, data := range disk.Image() {
		if strings.Contains(path, "/diverged-") && strings.HasSuffix(path, ".ndjson") {
			aside = append(aside, data...)
		}
	}
	for i := range all[after:] {
		if !bytes.Contains(aside, append(bytes.Clone(all[int(after)+i].Line), '\n')) {
			t.Fatalf("entry %d is neither in the journal nor set aside", all[int(after)+i].Seq)
		}
	}
}

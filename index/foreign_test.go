package index_test

import (
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// headOf returns the entry seq of a journal.
func headOf(tb testing.TB, k *kernel, seq uint64) journal.Head {
	tb.Helper()
	r := journal.NewReader(nil, k.dir, journal.ReaderOptions{From: seq})
	record, err := r.Next(ctx())
	testkit.Must(tb, err)
	testkit.Must(tb, r.Close())
	return journal.Head{Seq: seq, Hash: record.Hash}
}

func TestInJournal(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, 5000) // some segments
	held := headOf(t, k, 3000)
	last := headOf(t, k, 5000)
	altered := held
	altered.Hash[5] ^= 1
	cases := map[string]struct {
		head  journal.Head
		limit uint64
		want  bool
	}{
		"held":              {held, 5000, true},
		"last":              {last, 5000, true},
		"altered":           {altered, 5000, false},
		"of another":        {journal.Head{Seq: 2999, Hash: held.Hash}, 5000, false},
		"not synced":        {held, 2999, false},
		"after the end":     {journal.Head{Seq: 5001, Hash: held.Hash}, 6000, false},
		"far after the end": {journal.Head{Seq: 1 << 40, Hash: held.Hash}, 1 << 41, false},
	}
	for name, c := range cases {
		got, err := index.InJournal(nil, k.dir, func() uint64 { return c.limit }, c.head)
		testkit.Must(t, err)
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestForeign: an index of entries that the journal does not have is rebuilt, and a snapshot of such an entry is not
// loaded.
func TestForeign(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, run)
	path := newPath(t)
	s := open(t, path, index.Options{})
	testkit.Must(t, s.Save(ctx(), "kept", headOf(t, k, 100), 1, puts([]byte("kept"))))
	testkit.Must(t, s.Save(ctx(), "of entry 0", journal.Head{}, 0, puts()))
	testkit.Must(t, s.Save(ctx(), "of another", head(100), 1, puts([]byte("foreign"))))
	testkit.Must(t, s.Save(ctx(), "of later", head(1_000_000), 1, puts([]byte("foreign"))))
	fill(t, s, journalOf(run))
	testkit.Must(t, s.Close())

	var told troubles
	s = open(t, path, index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: told.add})
	told.want(t, index.ErrForeign)
	for name, want := range map[string]error{"kept": nil, "of entry 0": nil, "of another": index.ErrForeign, "of later": index.ErrForeign} {
		got, err := load(s, name)
		wantError(t, err, want)
		if want != nil && len(got) > 0 {
			t.Errorf("%d chunks of a foreign snapshot were restored", len(got))
		}
	}
	wantMark(t, s, 0)
	follow(t, s, k, index.Options{})
	testkit.Must(t, s.Close())

	told = troubles{}
	s = open(t, path, index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: told.add})
	told.want(t, nil)
	wantMark(t, s, run)
}

// TestOpenUnreadableJournal: nothing is dropped if the journal cannot be read.
func TestOpenUnreadableJournal(t *testing.T) {
	t.Parallel()
	path := filled(t)
	k := newKernel(t)
	k.grow(t, 1)
	_, err := index.Open(path, index.Options{Dir: k.dir, FS: faultfs.NewFailing(journal.OSFS{}, faultfs.Fault{N: 1, Err: syscall.EMFILE})})
	wantError(t, err, syscall.EMFILE)
	s := open(t, path, index.Options{})
	wantMark(t, s, 9984)
	got, err := load(s, "memory")
	testkit.Must(t, err)
	if !equal(got, filling()) {
		t.Fatal("the snapshot was removed")
	}
}

package store_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/store"
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
		"held":        {held, 5000, true},
		"last":        {last, 5000, true},
		"altered":     {altered, 5000, false},
		"of another":  {journal.Head{Seq: 2999, Hash: held.Hash}, 5000, false},
		"not synced":  {held, 2999, false},
		"past it all": {journal.Head{Seq: 5001, Hash: held.Hash}, 6000, false},
		"far past":    {journal.Head{Seq: 1 << 40, Hash: held.Hash}, 1 << 41, false},
	}
	for name, c := range cases {
		got, err := store.InJournal(nil, k.dir, func() uint64 { return c.limit })(c.head)
		testkit.Must(t, err)
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Open keeps what the journal has and drops what it does not have, each with a word.
func TestOpenDropsForeign(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, store.RunEntries)
	path := newPath(t)
	s := open(t, path, store.Options{})
	testkit.Must(t, s.Save(ctx(), "kept", headOf(t, k, 100), 1, puts([]byte("kept"))))
	testkit.Must(t, s.Save(ctx(), "of the beginning", journal.Head{}, 0, puts()))
	testkit.Must(t, s.Save(ctx(), "of another", head(100), 1, puts([]byte("foreign"))))
	testkit.Must(t, s.Save(ctx(), "of later", head(1_000_000), 1, puts([]byte("foreign"))))
	fill(t, s, journalOf(store.RunEntries))
	testkit.Must(t, s.Close())

	var told troubles
	s = open(t, path, store.Options{Holds: store.InJournal(nil, k.dir, k.log.Synced), Trouble: told.tell})
	if len(told.all()) != 3 {
		t.Fatalf("told %v, want three", told.all())
	}
	for _, err := range told.all() {
		wantError(t, err, store.ErrForeign)
	}
	infos, err := s.Snapshots(ctx())
	testkit.Must(t, err)
	if len(infos) != 2 || infos[0].Name != "kept" || infos[1].Name != "of the beginning" {
		t.Fatalf("left are %v", infos)
	}
	wantMark(t, s, 0)
	follow(t, s, k, store.FollowerOptions{})
	testkit.Must(t, s.Close())

	told = troubles{}
	s = open(t, path, store.Options{Holds: store.InJournal(nil, k.dir, k.log.Synced), Trouble: told.tell})
	told.want(t, nil)
	wantMark(t, s, store.RunEntries)
}

// Where the journal cannot be asked nothing is dropped.
func TestOpenCannotAsk(t *testing.T) {
	t.Parallel()
	path := filled(t)
	boom := errors.New("boom")
	_, err := store.Open(path, store.Options{Holds: func(journal.Head) (bool, error) { return false, boom }})
	wantError(t, err, boom)
	got, err := load(open(t, path, store.Options{}), "memory")
	testkit.Must(t, err)
	if !equal(got, filling()) {
		t.Fatal("the snapshot is gone")
	}
}

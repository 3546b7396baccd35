package store_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/store"
)

// Wherever half a page is overwritten or a bit flips, or the file is cut, nobody is given what was not saved, and no
// entry is left out of an answer; and afterwards the store can be made good.
func TestDamageAnywhere(t *testing.T) {
	t.Parallel()
	path := filled(t)
	sound, err := os.ReadFile(path)
	testkit.Must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for i := range 150 {
		spoiled := slices.Clone(sound)
		at := random.IntN(len(spoiled))
		switch i % 3 {
		case 0:
			spoiled[at] ^= 1 << random.IntN(8)
		case 1:
			half := at / 4096 * 4096
			for j := half; j < min(half+4096, len(spoiled)); j++ {
				spoiled[j] = ^spoiled[j]
			}
		case 2:
			spoiled = spoiled[:at]
		}
		copied := newPath(t)
		write(t, copied, spoiled)
		var told troubles
		s, err := store.Open(copied, store.Options{Trouble: told.tell})
		testkit.Must(t, err)
		found += wantSoundOrNone(t, s, len(told.all()) > 0)
		wantUsableAfterDrop(t, s)
		testkit.Must(t, s.Close())
	}
	if found < 75 {
		t.Fatalf("only %d of 150 damages were found: the test damages nothing", found)
	}
}

// wantSoundOrNone returns 1 where the store had noticed damage.
func wantSoundOrNone(tb testing.TB, s *store.Store, remade bool) int {
	tb.Helper()
	noticed := remade
	got, err := load(s, "memory")
	switch {
	case err == nil:
		if !equal(got, filling()) {
			tb.Fatal("a snapshot was loaded that was not saved")
		}
	case errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNoSnapshot):
		noticed = true
	default:
		tb.Fatal(err)
	}
	for _, seq := range []uint64{1, 3001, 9001} {
		f := store.Filter{Correlation: journalOf(10_000)[seq-1].Correlation}
		ranges, err := s.Ranges(ctx(), f, 1, 100)
		switch {
		case errors.Is(err, store.ErrDamaged):
			noticed = true
		case err != nil:
			tb.Fatal(err)
		case !slices.ContainsFunc(ranges, func(r store.Range) bool { return r.First <= seq && seq <= r.Last }):
			tb.Fatalf("entry %d is in none of %v", seq, ranges)
		}
	}
	if noticed {
		return 1
	}
	return 0
}

func wantUsableAfterDrop(tb testing.TB, s *store.Store) {
	tb.Helper()
	testkit.Must(tb, s.DropSnapshots(ctx()))
	// A tree of which DELETE sees only a part is met at the next Save at the latest.
	if err := s.Save(ctx(), "memory", head(1), 1, puts(state("x", 1, 1)...)); err != nil {
		wantError(tb, err, store.ErrDamaged)
	}
	testkit.Must(tb, s.DropIndex(ctx()))
	wantUsable(tb, s)
}

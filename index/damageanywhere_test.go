package index_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestDamageAnywhere: if half a page is overwritten, a bit flips, or the file is cut at any offset, no answer leaves
// out an entry, and the index can be rebuilt.
func TestDamageAnywhere(t *testing.T) {
	t.Parallel()
	path := filled(t)
	sound, err := os.ReadFile(filepath.Join(path, "index.db"))
	testkit.Must(t, err)
	snapshot, err := os.ReadFile(filepath.Join(path, "memory.snapshot"))
	testkit.Must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	rounds := testkit.Rounds(30, 50, 150)
	for i := range rounds {
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
		testkit.Must(t, os.Mkdir(copied, 0o700))
		write(t, filepath.Join(copied, "index.db"), spoiled)
		write(t, filepath.Join(copied, "memory.snapshot"), snapshot)
		var told troubles
		s, err := index.Open(copied, index.Options{Trouble: told.add})
		testkit.Must(t, err)
		found += wantSoundOrNone(t, s, len(told.all()) > 0)
		wantUsableAfterDrop(t, s)
		testkit.Must(t, s.Close())
	}
	if found < rounds/2 {
		t.Fatalf("only %d of %d damages were detected", found, rounds)
	}
}

// wantSoundOrNone returns 1 if the index has detected damage. It fails the test if an answer is incomplete.
func wantSoundOrNone(tb testing.TB, s *index.Index, remade bool) int {
	tb.Helper()
	noticed := remade
	got, err := load(s, "memory")
	testkit.Must(tb, err)
	if !equal(got, filling()) {
		tb.Fatal("the loaded snapshot differs from the saved one")
	}
	for _, seq := range []uint64{1, 3001, 9001} {
		f := index.Filter{Correlation: journalOf(10_000)[seq-1].Correlation}
		ranges, err := s.Ranges(ctx(), f, 1, 100)
		switch {
		case errors.Is(err, index.ErrDamaged):
			noticed = true
		case err != nil:
			tb.Fatal(err)
		case !slices.ContainsFunc(ranges, func(r index.Range) bool { return r.First <= seq && seq <= r.Last }):
			tb.Fatalf("entry %d is in none of %v", seq, ranges)
		}
	}
	if noticed {
		return 1
	}
	return 0
}

func wantUsableAfterDrop(tb testing.TB, s *index.Index) {
	tb.Helper()
	testkit.Must(tb, s.Drop())
	wantUsable(tb, s)
}

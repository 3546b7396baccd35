package main_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestNewest checks that newest returns the newest matching entries, for any distribution of matches and any page length, while
// entries are being appended, and that it reads no part of the journal twice.
func TestNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Int64Range(0, 3000).Draw(t, "last")
		added := rapid.Int64Range(0, 20).Draw(t, "added")
		every := rapid.Int64Range(1, 400).Draw(t, "every") // each entry whose number is a multiple of it matches
		floor := rapid.Int64Range(0, 3000).Draw(t, "floor")
		most := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, 4000), rapid.Just(int64(math.MaxInt64))).Draw(t, "most")
		short := rapid.Int64Range(1, 1000).Draw(t, "short") // most entries that fit in one answer
		var want []int64
		for seq := floor + 1; seq <= last; seq++ {
			if seq%every == 0 {
				want = append(want, seq)
			}
		}
		if int64(len(want)) > most {
			want = want[int64(len(want))-most:]
		}
		pages := 0
		got, err := pwos.Newest(floor, last, most, func(since, limit int64) (seqs []int64, next int64) {
			if pages++; limit < 1 || limit > 1000 || since < floor {
				t.Fatalf("newest asks for %d entries after %d, want from 1 to 1000, and none at or before %d", limit, since, floor)
			}
			for seq := since + 1; seq <= last+added; seq++ {
				if seq%every != 0 {
					continue
				}
				seqs = append(seqs, seq)
				if n := int64(len(seqs)); n == min(limit, short) {
					return seqs, seq
				}
			}
			return seqs, 0
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		// One page for each full page, and one partial page for each searched part; the parts grow exponentially.
		if enough := (last+added)/short + 160; int64(pages) > enough {
			t.Fatalf("%d pages for %d entries", pages, last)
		}
	})
}

package index_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRangesProperty: for any journal, filter and page size, the ranges contain every matching entry.
func TestRangesProperty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s, err := index.Open(fmt.Sprintf("%s/%d.db", dir, n), index.Options{})
		testkit.Must(t, err)
		defer s.Close()
		tags := drawJournal(t)
		add(t, s, tags)
		for range 20 {
			checkQuestion(t, s, tags)
		}
	})
}

// add indexes the whole blocks of a journal.
func add(t *rapid.T, s *index.Index, tags []index.Tags) {
	for ; len(tags) >= index.BlockEntries; tags = tags[index.BlockEntries:] {
		testkit.Must(t, s.Add(ctx(), tags[:index.BlockEntries]))
	}
}

func checkQuestion(t *rapid.T, s *index.Index, tags []index.Tags) {
	f := drawFilter(t, tags)
	from := rapid.Uint64Range(0, uint64(len(tags))+10).Draw(t, "from")
	limit := rapid.IntRange(1, 40).Draw(t, "limit")
	found, err := pages(s, f, from, limit)
	testkit.Must(t, err)
	at, before := 0, uint64(0)
	for _, r := range found {
		if r.First <= before || r.Last < r.First || r.First < from {
			t.Fatalf("ranges from %d are %v", from, found)
		}
		before = r.Last
	}
	for i := range tags {
		seq := uint64(i + 1)
		if seq < from || !fits(&tags[i], &f) {
			continue
		}
		for found[at].Last < seq {
			at++
		}
		if seq < found[at].First {
			t.Fatalf("entry %d fits %+v and is in none of %v", seq, f, found)
		}
	}
}

// TestBeforeProperty: for any page size, the ranges before an entry contain every matching entry up to it, the latest
// first.
func TestBeforeProperty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s, err := index.Open(fmt.Sprintf("%s/%d.db", dir, n), index.Options{})
		testkit.Must(t, err)
		defer s.Close()
		tags := drawJournal(t)
		add(t, s, tags)
		for range 20 {
			f := drawFilter(t, tags)
			seq := rapid.Uint64Range(0, uint64(len(tags))).Draw(t, "seq")
			limit := rapid.IntRange(1, 40).Draw(t, "limit")
			checkBefore(t, s, tags[:seq], f, limit)
		}
	})
}

func checkBefore(t *rapid.T, s *index.Index, tags []index.Tags, f index.Filter, limit int) {
	inside := make([]bool, len(tags))
	for up := uint64(len(tags)); up > 0; {
		page, err := s.Before(ctx(), f, up, limit)
		testkit.Must(t, err)
		if len(page) > limit {
			t.Fatalf("%d ranges, want at most %d", len(page), limit)
		}
		for _, r := range page {
			if r.Last > up || r.First > r.Last || r.First < 1 {
				t.Fatalf("ranges up to %d are %v", up, page)
			}
			for seq := r.First; seq <= r.Last; seq++ {
				inside[seq-1] = true
			}
			up = r.First - 1
		}
		if len(page) < limit {
			break
		}
	}
	for i := range tags {
		if fits(&tags[i], &f) && !inside[i] {
			t.Fatalf("entry %d fits %+v and is in no range", i+1, f)
		}
	}
}

func drawJournal(t *rapid.T) []index.Tags {
	n := rapid.IntRange(0, 3*run).Draw(t, "entries")
	few := rapid.Int64Range(1, 5).Draw(t, "pids")
	stretch := rapid.IntRange(1, 700).Draw(t, "stretch")
	every := rapid.IntRange(1, 300).Draw(t, "every")
	step := rapid.SampledFrom([]int64{-1000, -1, 0, 1, 1000}).Draw(t, "step")
	tags := make([]index.Tags, n)
	for i := range tags {
		tags[i] = index.Tags{
			Head: head(uint64(i + 1)), PID: int64(i/stretch) % few, Type: fmt.Sprintf("Memory.T%d", i/stretch%11),
			Time: int64(i) + step*int64(i/stretch), // the clock steps sometimes, also back
		}
		if i%every == 0 {
			tags[i].Correlation = fmt.Sprint("c", i/(3*every))
		}
		if i%3 == 0 {
			tags[i].ID, tags[i].Causation = fmt.Sprint("m", i), fmt.Sprint("m", i-i%every)
			tags[i].Key, tags[i].Origin = fmt.Sprint("k", i%every), fmt.Sprint("o", i/stretch%3)
		}
		if i%(every*5) == 2 {
			tags[i].Holders = []int64{int64(i / stretch), 2}
		}
		tags[i].Denied = i%(every*7) == 3
		if i%(every*40) == 17 {
			tags[i].Type = ""
		}
	}
	return tags
}

func drawFilter(t *rapid.T, tags []index.Tags) (f index.Filter) {
	example := index.Tags{PID: 1, Type: "Memory.T1", Correlation: "c1"}
	if len(tags) > 0 {
		example = tags[rapid.IntRange(0, len(tags)-1).Draw(t, "example")]
	}
	if rapid.IntRange(0, 3).Draw(t, "only a token") == 0 {
		return index.Filter{Holder: new(rapid.Int64Range(0, 40).Draw(t, "holder"))}
	}
	set := rapid.IntRange(0, 1023).Draw(t, "members")
	width := rapid.Int64Range(0, 500).Draw(t, "width")
	since, until := example.Time-width, example.Time+width
	if set&1 != 0 {
		f.PID = &example.PID
	}
	if set&2 != 0 {
		f.Type = example.Type
	}
	if set&4 != 0 {
		f.Correlation = example.Correlation
	}
	if set&8 != 0 {
		f.SinceTime = &since
	}
	if set&16 != 0 {
		f.UntilTime = &until
	}
	if set&32 != 0 {
		f.ID = example.ID
	}
	if set&64 != 0 {
		f.CausedBy = example.Causation
	}
	if set&128 != 0 {
		f.Key, f.Origin = example.Key, example.Origin
	}
	if set&512 != 0 && len(example.Holders) > 0 {
		f.Holder = &example.Holders[0]
	}
	f.Denied = set&256 != 0
	return f
}

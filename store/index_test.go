package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/store"
)

// fill indexes the entries after the watermark, as many whole runs as there are.
func fill(tb testing.TB, s *store.Store, tags []store.Tags) {
	tb.Helper()
	x, err := s.Indexer(ctx())
	testkit.Must(tb, err)
	for i := int(x.Next()) - 1; i < len(tags)/store.RunEntries*store.RunEntries; i++ {
		testkit.Must(tb, x.Add(&tags[i]))
		if x.Full() {
			testkit.Must(tb, x.Commit(ctx()))
		}
	}
}

// journalOf is n entries: a pid of 7 and a type of 5 in long stretches, one correlation every thousand.
func journalOf(n int) []store.Tags {
	tags := make([]store.Tags, n)
	for i := range tags {
		seq := uint64(i + 1)
		tags[i] = store.Tags{
			Head: head(seq), Time: 1735000000000 + int64(i), PID: int64(i / 1000 % 7), Type: fmt.Sprintf("Memory.T%d", i/500%5),
		}
		if i%1000 == 0 {
			tags[i].Correlation = fmt.Sprint("c-", i)
		}
	}
	return tags
}

func fits(t *store.Tags, f *store.Filter) bool {
	return (f.PID == nil || *f.PID == t.PID) &&
		(f.Type == "" || t.Type == "" || f.Type == t.Type) &&
		(f.Correlation == "" || t.Type == "" || f.Correlation == t.Correlation) &&
		(f.SinceTime == nil || t.Time >= *f.SinceTime) &&
		(f.UntilTime == nil || t.Time <= *f.UntilTime)
}

// pages asks for all ranges, a few at a time.
func pages(s *store.Store, f store.Filter, from uint64, limit int) (all []store.Range, err error) {
	for {
		page, err := s.Ranges(ctx(), f, from, limit)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 || len(page) > limit {
			return nil, fmt.Errorf("page of %d ranges at a limit of %d", len(page), limit)
		}
		all = append(all, page...)
		last := page[len(page)-1].Last
		if last == store.OpenEnd {
			return all, nil
		}
		from = last + 1
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	tags := journalOf(2*store.RunEntries + 100)
	s := open(t, newPath(t), store.Options{})
	fill(t, s, tags)
	const end = store.OpenEnd
	number := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		filter store.Filter
		from   uint64
		limit  int
		want   []store.Range
	}{
		"all":                {store.Filter{}, 1, 10, []store.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"from 0 is 1":        {store.Filter{}, 0, 10, []store.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"from inside":        {store.Filter{}, 5000, 10, []store.Range{{5000, 8192}, {8193, end}}},
		"from the tail":      {store.Filter{}, 8200, 10, []store.Range{{8200, end}}},
		"from past the end":  {store.Filter{}, 1 << 40, 10, []store.Range{{1 << 40, end}}},
		"from at most":       {store.Filter{}, end, 10, []store.Range{{end, end}}},
		"limit":              {store.Filter{}, 1, 1, []store.Range{{1, 4096}}},
		"limit below 1":      {store.Filter{}, 1, -4, []store.Range{{1, 4096}}},
		"limit is all":       {store.Filter{}, 1, 3, []store.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"pid":                {store.Filter{PID: number(1)}, 1, 10, []store.Range{{769, 2048}, {7937, 8192}, {8193, end}}},
		"pid that is absent": {store.Filter{PID: number(-1)}, 1, 10, []store.Range{{8193, end}}},
		"correlation":        {store.Filter{Correlation: "c-5000"}, 1, 10, []store.Range{{4865, 5120}, {8193, end}}},
		"pid and type":       {store.Filter{PID: number(1), Type: "Memory.T3"}, 1, 10, []store.Range{{1281, 2048}, {8193, end}}},
		"since":              {store.Filter{SinceTime: number(1735000000000 + 8191)}, 1, 10, []store.Range{{7937, 8192}, {8193, end}}},
		"until":              {store.Filter{UntilTime: number(1735000000000 + 256)}, 1, 10, []store.Range{{1, 512}, {8193, end}}},
		"between": {
			store.Filter{SinceTime: number(1735000000000 + 300), UntilTime: number(1735000000000 + 300)},
			1, 10,
			[]store.Range{{257, 512}, {8193, end}},
		},
	}
	for name, c := range cases {
		got, err := s.Ranges(ctx(), c.filter, c.from, c.limit)
		testkit.Must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// The watermark is the last entry of the last whole run; an index that was dropped begins again, and an Indexer of before
// notices.
func TestWatermark(t *testing.T) {
	t.Parallel()
	tags := journalOf(2*store.RunEntries + 100)
	path := newPath(t)
	s := open(t, path, store.Options{})
	wantMark := func(want journal.Head) {
		t.Helper()
		got, err := s.Watermark(ctx())
		testkit.Must(t, err)
		if got != want {
			t.Fatalf("watermark %v, want %v", got, want)
		}
	}
	wantMark(journal.Head{})
	fill(t, s, tags[:store.RunEntries+50])
	wantMark(head(store.RunEntries))
	testkit.Must(t, s.Close())
	s = open(t, path, store.Options{})
	wantMark(head(store.RunEntries))

	stale, err := s.Indexer(ctx())
	testkit.Must(t, err)
	for i := store.RunEntries; i < 2*store.RunEntries; i++ {
		testkit.Must(t, stale.Add(&tags[i]))
	}
	testkit.Must(t, s.DropIndex(ctx()))
	wantMark(journal.Head{})
	wantError(t, stale.Commit(ctx()), store.ErrOrder)
	fill(t, s, tags)
	wantMark(head(2 * store.RunEntries))
	wantError(t, stale.Commit(ctx()), store.ErrOrder)
}

func TestIndexerOrder(t *testing.T) {
	t.Parallel()
	tags := journalOf(store.RunEntries + 1)
	s := open(t, newPath(t), store.Options{})
	x, err := s.Indexer(ctx())
	testkit.Must(t, err)
	wantError(t, x.Add(&tags[1]), store.ErrOrder)
	testkit.Must(t, x.Add(&tags[0]))
	wantError(t, x.Add(&tags[0]), store.ErrOrder)
	wantError(t, x.Commit(ctx()), store.ErrOrder)
	for i := 1; i < store.RunEntries; i++ {
		testkit.Must(t, x.Add(&tags[i]))
	}
	wantError(t, x.Add(&tags[store.RunEntries]), store.ErrOrder)

	// What could not be committed is kept.
	cancelled, cancel := context.WithCancel(ctx())
	cancel()
	wantError(t, x.Commit(cancelled), context.Canceled)
	testkit.Must(t, x.Commit(ctx()))
	testkit.Must(t, x.Add(&tags[store.RunEntries]))
}

// An entry of which nothing can be read is in every answer that it could belong to.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	tags := journalOf(store.RunEntries)
	tags[1000].Type = ""
	s := open(t, newPath(t), store.Options{})
	fill(t, s, tags)
	for _, f := range []store.Filter{{Type: "No.Such"}, {Correlation: "none"}, {Type: "No.Such", Correlation: "none"}} {
		got, err := s.Ranges(ctx(), f, 1, 10)
		testkit.Must(t, err)
		if want := []store.Range{{769, 1024}, {4097, store.OpenEnd}}; !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", f, got, want)
		}
	}
}

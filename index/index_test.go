package index_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// fill indexes the entries after the watermark, as many whole blocks as there are.
func fill(tb testing.TB, s *index.Index, tags []index.Tags) {
	tb.Helper()
	mark, err := s.Watermark(ctx())
	testkit.Must(tb, err)
	for block := range slices.Chunk(tags[mark.Seq:], index.BlockEntries) {
		if len(block) == index.BlockEntries {
			testkit.Must(tb, s.Add(ctx(), block))
		}
	}
}

// journalOf returns the tags of n entries: long runs of one of 7 pids and one of 5 types, and a correlation for each
// thousand.
func journalOf(n int) []index.Tags {
	tags := make([]index.Tags, n)
	for i := range tags {
		seq := uint64(i + 1)
		tags[i] = index.Tags{
			Head: head(seq), Time: 1735000000000 + int64(i), PID: int64(i / 1000 % 7), Type: fmt.Sprintf("Memory.T%d", i/500%5),
		}
		if i%1000 == 0 {
			tags[i].Correlation = fmt.Sprint("c-", i)
		}
	}
	return tags
}

func fits(t *index.Tags, f *index.Filter) bool {
	return (f.PID == nil || *f.PID == t.PID) &&
		(f.Type == "" || t.Type == "" || f.Type == t.Type) &&
		(f.Correlation == "" || t.Type == "" || f.Correlation == t.Correlation) &&
		(f.ID == "" || t.Type == "" || f.ID == t.ID) &&
		(f.CausedBy == "" || t.Type == "" || f.CausedBy == t.Causation) &&
		(f.Key == "" || t.Type == "" || f.Key == t.Key && f.Origin == t.Origin) &&
		(f.Holder == nil || t.Type == "" || slices.Contains(t.Holders, *f.Holder)) &&
		(!f.Denied || t.Denied) &&
		(f.SinceTime == nil || t.Time >= *f.SinceTime) &&
		(f.UntilTime == nil || t.Time <= *f.UntilTime)
}

// pages reads all ranges, in pages of limit.
func pages(s *index.Index, f index.Filter, from uint64, limit int) (all []index.Range, err error) {
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
		if last == index.OpenEnd {
			return all, nil
		}
		from = last + 1
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	tags := journalOf(2*run + 100)
	s := open(t, newPath(t), index.Options{})
	fill(t, s, tags)
	const end = index.OpenEnd
	number := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		filter index.Filter
		from   uint64
		limit  int
		want   []index.Range
	}{
		"all":               {index.Filter{}, 1, 10, []index.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"from 0 is 1":       {index.Filter{}, 0, 10, []index.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"from inside":       {index.Filter{}, 5000, 10, []index.Range{{5000, 8192}, {8193, end}}},
		"from the tail":     {index.Filter{}, 8200, 10, []index.Range{{8200, end}}},
		"from past the end": {index.Filter{}, 1 << 40, 10, []index.Range{{1 << 40, end}}},
		"from at most":      {index.Filter{}, end, 10, []index.Range{{end, end}}},
		"limit":             {index.Filter{}, 1, 1, []index.Range{{1, 4096}}},
		"limit below 1":     {index.Filter{}, 1, -4, []index.Range{{1, 4096}}},
		"limit is all":      {index.Filter{}, 1, 3, []index.Range{{1, 4096}, {4097, 8192}, {8193, end}}},
		"pid":               {index.Filter{PID: number(1)}, 1, 10, []index.Range{{769, 2048}, {7937, 8192}, {8193, end}}},
		"unknown pid":       {index.Filter{PID: number(-1)}, 1, 10, []index.Range{{8193, end}}},
		"correlation":       {index.Filter{Correlation: "c-5000"}, 1, 10, []index.Range{{4865, 5120}, {8193, end}}},
		"pid and type":      {index.Filter{PID: number(1), Type: "Memory.T3"}, 1, 10, []index.Range{{1281, 2048}, {8193, end}}},
		"since":             {index.Filter{SinceTime: number(1735000000000 + 8191)}, 1, 10, []index.Range{{7937, 8192}, {8193, end}}},
		"until":             {index.Filter{UntilTime: number(1735000000000 + 256)}, 1, 10, []index.Range{{1, 512}, {8193, end}}},
		"between": {
			index.Filter{SinceTime: number(1735000000000 + 300), UntilTime: number(1735000000000 + 300)},
			1, 10,
			[]index.Range{{257, 512}, {8193, end}},
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

// TestWatermark: the watermark is the last entry of the last block. After Drop the index begins again, and a block that
// follows the old watermark is refused.
func TestWatermark(t *testing.T) {
	t.Parallel()
	tags := journalOf(2*run + 100)
	path := newPath(t)
	s := open(t, path, index.Options{})
	wantMark := func(want journal.Head) {
		t.Helper()
		got, err := s.Watermark(ctx())
		testkit.Must(t, err)
		if got != want {
			t.Fatalf("watermark %v, want %v", got, want)
		}
	}
	wantMark(journal.Head{})
	fill(t, s, tags[:run+50])
	wantMark(head(run))
	testkit.Must(t, s.Close())
	s = open(t, path, index.Options{})
	wantMark(head(run))

	stale := tags[run : run+index.BlockEntries]
	testkit.Must(t, s.Drop())
	wantMark(journal.Head{})
	wantError(t, s.Add(ctx(), stale), index.ErrOrder)
	fill(t, s, tags)
	wantMark(head(2 * run))
	wantError(t, s.Add(ctx(), stale), index.ErrOrder)
}

func TestAddOrder(t *testing.T) {
	t.Parallel()
	tags := journalOf(3 * index.BlockEntries)
	s := open(t, newPath(t), index.Options{})
	wantError(t, s.Add(ctx(), tags[index.BlockEntries:2*index.BlockEntries]), index.ErrOrder)
	testkit.Must(t, s.Add(ctx(), tags[:index.BlockEntries]))
	wantError(t, s.Add(ctx(), tags[:index.BlockEntries]), index.ErrOrder)
	wantError(t, s.Add(ctx(), tags[index.BlockEntries:2*index.BlockEntries-1]), index.ErrOrder)
	wantError(t, s.Add(ctx(), tags[index.BlockEntries+1:2*index.BlockEntries]), index.ErrOrder)
	wantError(t, s.Add(ctx(), tags[index.BlockEntries:2*index.BlockEntries+1]), index.ErrOrder)
	wantError(t, s.Add(ctx(), tags[index.BlockEntries:3*index.BlockEntries]), index.ErrOrder)
	wantError(t, s.Add(ctx(), nil), index.ErrOrder)
	wrong := slices.Clone(tags[index.BlockEntries : 2*index.BlockEntries])
	wrong[7] = wrong[6]
	wantError(t, s.Add(ctx(), wrong), index.ErrOrder)

	// A block whose commit failed can be added again.
	cancelled, cancel := context.WithCancel(ctx())
	cancel()
	wantError(t, s.Add(cancelled, tags[index.BlockEntries:2*index.BlockEntries]), context.Canceled)
	testkit.Must(t, s.Add(ctx(), tags[index.BlockEntries:2*index.BlockEntries]))
}

// TestUnreadableEntry: an unreadable entry is in every answer that it may belong to.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	tags := journalOf(run)
	tags[1000].Type = ""
	s := open(t, newPath(t), index.Options{})
	fill(t, s, tags)
	for _, f := range []index.Filter{{Type: "No.Such"}, {Correlation: "none"}, {Type: "No.Such", Correlation: "none"}} {
		got, err := s.Ranges(ctx(), f, 1, 10)
		testkit.Must(t, err)
		if want := []index.Range{{769, 1024}, {4097, index.OpenEnd}}; !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", f, got, want)
		}
	}
}

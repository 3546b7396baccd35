package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// clock is a clock that advances by step at each Now, and by the duration of each Sleep.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	step  time.Duration
	slept []time.Duration
	tick  func(time.Duration) // called with each sleep
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.step)
	return c.now
}

func (c *clock) Sleep(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	if c.tick != nil {
		c.tick(d)
	}
}

const poll = 12345 * time.Second // a sleep of this length means that the journal has no further block

// follow runs Follow until it waits for the journal, and returns its clock.
func follow(tb testing.TB, s *index.Index, k *kernel, o index.Options) *clock {
	tb.Helper()
	until, cancel := context.WithCancel(ctx())
	defer cancel()
	c := &clock{step: time.Millisecond}
	c.tick = func(d time.Duration) {
		if d == poll && len(c.slept) > 1 && c.slept[len(c.slept)-2] != poll || len(c.slept) > 10_000 {
			cancel()
		}
		if len(c.slept) > 2 && slices.Equal(c.slept[len(c.slept)-3:], []time.Duration{poll, poll, poll}) {
			cancel()
		}
	}
	if o.Synced == nil {
		o.Synced = k.log.Synced
	}
	o.Dir, o.Poll, o.Now, o.Sleep = k.dir, poll, c.Now, c.Sleep
	s.Set(o)
	testkit.Must(tb, s.Follow(until))
	return c
}

func wantMark(tb testing.TB, s *index.Index, seq uint64) {
	tb.Helper()
	mark, err := s.Watermark(ctx())
	testkit.Must(tb, err)
	if mark.Seq != seq {
		tb.Fatalf("watermark %d, want %d", mark.Seq, seq)
	}
}

// TestFollower: Follow indexes every whole block of the journal, across segments and restarts.
func TestFollower(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	path := newPath(t)
	var told troubles
	o := index.Options{Dir: k.dir, Trouble: told.add}
	s := open(t, path, o)
	k.grow(t, index.BlockEntries-1)
	follow(t, s, k, index.Options{Trouble: told.add})
	wantMark(t, s, 0)
	k.grow(t, run-index.BlockEntries)
	follow(t, s, k, index.Options{Trouble: told.add})
	wantMark(t, s, run-index.BlockEntries)
	k.grow(t, 1)
	follow(t, s, k, index.Options{Trouble: told.add})
	wantMark(t, s, run)
	testkit.Must(t, s.Close())
	s = open(t, path, o)
	k.grow(t, run+20)
	follow(t, s, k, index.Options{Trouble: told.add})
	wantMark(t, s, 2*run)
	told.want(t, nil)

	pid := int64(5)
	tail := index.Range{First: 2*run + 1, Last: index.OpenEnd}
	wild := func(more ...index.Range) []index.Range {
		for seq := uint64(997); seq <= 2*run; seq += 997 {
			first := (seq-1)/256*256 + 1
			more = append(more, index.Range{First: first, Last: first + 255})
		}
		slices.SortFunc(more, func(a, b index.Range) int { return int(a.First) - int(b.First) })
		return append(slices.Compact(more), tail)
	}
	cases := map[string]struct {
		filter index.Filter
		want   []index.Range
	}{
		"pid":         {index.Filter{PID: &pid}, []index.Range{{4865, 6144}, tail}},
		"old dialect": {index.Filter{Type: "Memory.Get"}, wild(index.Range{First: 5889, Last: 6144})},
		"correlation": {index.Filter{Correlation: "c-7500"}, wild(index.Range{First: 7425, Last: 7680})},
	}
	for name, c := range cases {
		// Adjacent blocks are returned as one range.
		got, err := s.Ranges(ctx(), c.filter, 1, 100)
		testkit.Must(t, err)
		if got := blocks(got); !slices.Equal(got, blocks(c.want)) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestFollowerIndexesEnds: the end of an effect, an entry of the kernel, is found by the process and the type of its
// call.
func TestFollowerIndexesEnds(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	s := open(t, newPath(t), index.Options{})
	k.grow(t, 299)
	end := entry(300)
	end.PID = 0
	end.Request = []byte(`{"kind":"command","type":"Http.Fetched","data":{"intent":17,"type":"Http.Fetch","pid":77,"ran":true,"outcome":{"kind":"reply","data":1}},"metadata":{"id":"x","timestamp":1}}`)
	k.log.Append(end)
	testkit.Must(t, k.log.Flush())
	k.grow(t, run-300)
	follow(t, s, k, index.Options{})
	pid := int64(77)
	got, err := s.Ranges(ctx(), index.Filter{PID: &pid, Type: "Http.Fetch"}, 1, 100)
	testkit.Must(t, err)
	if want := []index.Range{{First: 257, Last: 512}, {First: run + 1, Last: index.OpenEnd}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFollowerIndexesMessages: entries are found by id, cause, memory key with origin, process whose token changes, and
// refusal.
func TestFollowerIndexesMessages(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	s := open(t, newPath(t), index.Options{})
	add := func(typ, data, outcome string) {
		e := entry(k.log.Written() + 1)
		e.PID, e.Origin = 0, "https://a.test/"
		e.Request = fmt.Appendf(nil, `{"kind":"command","type":%q,"data":%s,"metadata":{"id":"the \u0069d","timestamp":1,"causation":"cause"}}`, typ, data)
		e.Outcome = []byte(outcome)
		k.log.Append(e)
		testkit.Must(t, k.log.Flush())
	}
	k.grow(t, 299)
	add("Memory.Delete", `{"key":"/notes/\u0031"}`, `{"kind":"error","data":{"code":403,"message":"no"}}`)
	k.grow(t, 300)
	add("Http.Fetched", `{"intent":17,"type":"Http.Fetch","pid":77,"ran":true,"causation":"fetch cause","outcome":{"kind":"reply","data":1}}`, `{"kind":"reply","data":1}`)
	add("Capability.Strip", `{"pids":[77,78]}`, `{"kind":"reply","data":{"success":true}}`)
	k.grow(t, 300)
	add("Capability.Grant", `{"pid":77}`, `{"kind":"error","data":{"code":409,"message":"no"}}`)
	add("Capability.RevokeExpired", `{}`, `{"kind":"reply","data":{"revoked":[80]}}`)
	k.grow(t, run-904)
	follow(t, s, k, index.Options{})
	stripped, expired := int64(78), int64(80)
	for _, tt := range []struct {
		filter index.Filter
		block  int
	}{
		{index.Filter{ID: "the id"}, 1},
		{index.Filter{CausedBy: "cause"}, 1}, // for an end, the id of its call
		{index.Filter{ID: "cause"}, 2},
		{index.Filter{CausedBy: "fetch cause"}, 2},
		{index.Filter{Key: "notes/1", Origin: "https://a.test/"}, 1},
		{index.Filter{Key: "notes/1", Origin: "https://b.test/"}, -1},
		{index.Filter{Denied: true}, 1},
		{index.Filter{Holder: &stripped}, 2},
		{index.Filter{Holder: &expired}, 3},
	} {
		got, err := s.Ranges(ctx(), tt.filter, 1, 100)
		testkit.Must(t, err)
		found := slices.ContainsFunc(blocks(got), func(r index.Range) bool { return r.First == uint64(tt.block)*256+1 })
		if want := tt.block >= 0; found != want || len(blocks(got)) > 7 { // unreadable entries are in five blocks
			t.Errorf("%+v: got %v, want block %d", tt.filter, got, tt.block)
		}
	}
}

func blocks(ranges []index.Range) (all []index.Range) {
	for _, r := range ranges {
		for r.Last != index.OpenEnd && r.First < r.Last {
			all = append(all, index.Range{First: r.First, Last: r.First + 255})
			r.First += 256
		}
		if r.Last == index.OpenEnd {
			all = append(all, r)
		}
	}
	return all
}

// TestFollowerRests: after each block Follow pauses for 9 times the block's time, a millisecond by the clock, and for
// 49 times while the journal grows.
func TestFollowerRests(t *testing.T) {
	t.Parallel()
	const blocks = 2 * run / 256
	k := newKernel(t)
	k.grow(t, 2*run)
	growing := uint64(2 * run)
	cases := map[string]struct {
		synced func() uint64
		want   time.Duration
	}{
		"journal at rest": {nil, 9 * time.Millisecond},
		"it grows":        {func() uint64 { growing++; return min(growing, 2*run+index.BlockEntries-1) }, 49 * time.Millisecond},
	}
	for name, c := range cases {
		rests := 0
		for _, d := range follow(t, open(t, newPath(t), index.Options{}), k, index.Options{Synced: c.synced}).slept {
			switch d {
			case c.want:
				rests++
			case poll:
			default:
				t.Errorf("%s: slept %v", name, d)
			}
		}
		if rests != 2*blocks { // one of tags and one of documents
			t.Errorf("%s: %d rests, want %d", name, rests, 2*blocks)
		}
	}
}

// TestFollowerOfAnotherJournal: an index of another journal, or of one that lost its end, is rebuilt, also while it is
// open.
func TestFollowerOfAnotherJournal(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(runs, " runs"), func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), index.Options{})
			fill(t, s, journalOf(2*run))
			k := newKernel(t)
			k.grow(t, runs*run)
			var told troubles
			follow(t, s, k, index.Options{Trouble: told.add})
			if runs == 2 { // the journal ends at the watermark, so only the check in Open detects it
				wantMark(t, s, 2*run)
				return
			}
			told.want(t, index.ErrForeign)
			wantMark(t, s, uint64(runs*run))
			mark, err := s.Watermark(ctx())
			testkit.Must(t, err)
			held, err := index.InJournal(nil, k.dir, nil, mark)
			testkit.Must(t, err)
			if !held {
				t.Fatal("the rebuilt index does not match the new journal")
			}
		})
	}
}

// TestFollowerWithoutRoom: Follow retries while the disk is full.
func TestFollowerWithoutRoom(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, run)
	s := open(t, newPath(t), index.Options{})
	const full = "CREATE TRIGGER full BEFORE INSERT ON blocks BEGIN SELECT RAISE(ABORT, 'full'); END"
	testkit.Must(t, s.Exec(full))
	var told troubles
	until, cancel := context.WithCancel(ctx())
	defer cancel()
	c := &clock{tick: func(time.Duration) {
		switch mark, err := s.Watermark(ctx()); {
		case err != nil || mark.Seq == run:
			cancel()
		case len(told.all()) == 2:
			if err := s.Exec("DROP TRIGGER IF EXISTS full"); err != nil {
				t.Error(err)
			}
		}
	}}
	s.Set(index.Options{
		Dir: k.dir, Synced: k.log.Synced, Now: c.Now, Sleep: c.Sleep, Trouble: told.add,
	})
	testkit.Must(t, s.Follow(until))
	if len(told.all()) != 2 {
		t.Fatalf("reported %v", told.all())
	}
	wantMark(t, s, run)
}

// TestFollowerWithoutDescriptors: Follow retries while the process has no free descriptor.
func TestFollowerWithoutDescriptors(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, run)
	s := open(t, newPath(t), index.Options{})
	for n := 1; n <= 20; n++ {
		testkit.Must(t, s.Drop())
		fsys := faultfs.NewFailing(journal.OSFS{}, faultfs.Fault{N: n, Err: syscall.EMFILE})
		var told troubles
		until, cancel := context.WithCancel(ctx())
		c := &clock{tick: func(time.Duration) {
			if mark, err := s.Watermark(ctx()); err != nil || mark.Seq == run {
				cancel()
			}
		}}
		s.Set(index.Options{
			FS: fsys, Dir: k.dir, Synced: k.log.Synced, Now: c.Now, Sleep: c.Sleep, Trouble: told.add,
		})
		testkit.Must(t, s.Follow(until))
		cancel()
		wantMark(t, s, run)
		if fsys.Count() < n { // the work ended before the fault
			if n < 5 {
				t.Errorf("Follow needed only %d operations", fsys.Count())
			}
			return
		}
		told.want(t, syscall.EMFILE)
	}
}

// TestFollowerAfterDrop: Follow rebuilds an index that is dropped meanwhile.
func TestFollowerAfterDrop(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, 2*run)
	s := open(t, newPath(t), index.Options{})
	dropped := false
	limit := func() uint64 {
		if mark, err := s.Watermark(ctx()); err == nil && mark.Seq == run && !dropped {
			dropped = true
			testkit.Must(t, s.Drop())
		}
		return k.log.Synced()
	}
	var told troubles
	until, cancel := context.WithCancel(ctx())
	defer cancel()
	c := &clock{tick: func(d time.Duration) {
		if mark, err := s.Watermark(ctx()); err != nil || mark.Seq == 2*run {
			cancel()
		}
	}}
	s.Set(index.Options{
		Dir: k.dir, Synced: limit, Now: c.Now, Sleep: c.Sleep, Trouble: told.add,
	})
	testkit.Must(t, s.Follow(until))
	told.want(t, index.ErrOrder)
	wantMark(t, s, 2*run)
}

func TestFollowerEnds(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.grow(t, run)
	s := open(t, newPath(t), index.Options{})

	// With the real clock, and no synced entry.
	s.Set(index.Options{Dir: k.dir, Synced: func() uint64 { return 0 }})
	until, cancel := context.WithCancel(ctx())
	done := make(chan error, 1)
	go func() {
		done <- s.Follow(until)
	}()
	cancel()
	testkit.Must(t, <-done)

	// A damaged entry is not skipped.
	segment := k.dir + "/00000000000000000001.ndjson"
	data, err := os.ReadFile(segment)
	testkit.Must(t, err)
	data[len(data)/2] ^= 1
	testkit.Must(t, os.WriteFile(segment, data, 0o600))
	s.Set(index.Options{Dir: k.dir})
	err = s.Follow(ctx())
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("got %v, want a DamageError", err)
	}
	wantMark(t, s, 1280) // the whole blocks before the damage

	testkit.Must(t, s.Close())
	wantError(t, s.Follow(ctx()), index.ErrClosed)
}

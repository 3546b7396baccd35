package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// TestSnapshotRoundTrip: Load returns the saved chunks with their boundaries, also after the index was opened again.
func TestSnapshotRoundTrip(t *testing.T) {
	t.Parallel()
	cases := map[string][][]byte{
		"none":        nil,
		"empty chunk": {{}},
		"empty among": {[]byte("a"), {}, {}, []byte("b")},
		"tiny":        state("tiny", 10_000, 3),
		"part":        {bytes.Repeat([]byte("x"), 256<<10)},
		"around part": {bytes.Repeat([]byte("x"), 256<<10-11), []byte("y"), bytes.Repeat([]byte("z"), 256<<10-10), []byte("y")},
		"parts":       state("many", 3000, 1000),
		"long":        {[]byte("before"), bytes.Repeat([]byte("0123456789abcdef"), 4<<20), []byte("after")},
	}
	for name, chunks := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, index.Options{})
			testkit.Must(t, s.Save(ctx(), "memory", head(7), 3, puts(chunks...)))
			for range 2 {
				got, err := load(s, "memory")
				testkit.Must(t, err)
				if !equal(got, chunks) {
					t.Fatalf("the %d loaded chunks differ from the %d saved ones", len(got), len(chunks))
				}
				if at, tick := of(t, s, "memory"); at != head(7) || tick != 3 {
					t.Fatalf("the snapshot is of entry %d, tick %d", at.Seq, tick)
				}
				testkit.Must(t, s.Close())
				s = open(t, path, index.Options{})
			}
		})
	}
}

// TestSnapshotNames: each name has one snapshot, the last that was saved.
func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), index.Options{})
	for i, name := range []string{"memory", "keys", "", "memory", "Zürich / \x00?"} {
		testkit.Must(t, s.Save(ctx(), name, head(uint64(i)+1), int64(i), puts(state(fmt.Sprint(i), 2, 1)...)))
	}
	for name, i := range map[string]int64{"": 2, "Zürich / \x00?": 4, "keys": 1, "memory": 3} {
		got, err := load(s, name)
		testkit.Must(t, err)
		if at, tick := of(t, s, name); at != head(uint64(i)+1) || tick != i || !equal(got, state(fmt.Sprint(i), 2, 1)) {
			t.Fatalf("snapshot %q holds %q", name, got)
		}
	}
	_, err := load(s, "Memory")
	wantError(t, err, index.ErrNoSnapshot)
}

// TestSaveThatFails: a Save that fails leaves the old snapshot, and the next Save succeeds.
func TestSaveThatFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	chunks := state("new", 40, 100_000) // more than the buffer holds, so that a part is in the file
	ended, end := context.WithCancel(ctx())
	end()
	during, cancel := context.WithCancel(ctx())
	last, cancelLast := context.WithCancel(ctx())
	unnoticed, cancelUnnoticed := context.WithCancel(ctx())
	cases := map[string]struct {
		ctx   context.Context
		write func(put func([]byte) error) error
		want  error
	}{
		"write returns an error": {ctx(), func(put func([]byte) error) error { return errors.Join(puts(chunks...)(put), boom) }, boom},
		"context ends":           {during, func(put func([]byte) error) error { cancel(); return puts(chunks...)(put) }, context.Canceled},
		"context ends, error ignored": {unnoticed, func(put func([]byte) error) error {
			cancelUnnoticed()
			_ = puts(chunks...)(put)
			return nil
		}, context.Canceled},
		"context ends at the end": {last, func(put func([]byte) error) error { cancelLast(); return nil }, context.Canceled},
		"context ended before":    {ended, puts(chunks...), context.Canceled},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, newPath(t), index.Options{})
			testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
			err := s.Save(c.ctx, "memory", head(2), 2, c.write)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("got error %v, want %v", err, c.want)
			}
			wantOld(t, s)
			testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, puts(chunks...)))
			got, err := load(s, "memory")
			testkit.Must(t, err)
			if !equal(got, chunks) {
				t.Fatal("the Save after the failed one was lost")
			}
		})
	}
}

func TestSaveThatPanics(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.Save(ctx(), "memory", head(2), 2, func(put func([]byte) error) error { panic("boom") })
	}()
	wantOld(t, s)
	testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, puts()))
}

// wantOld fails the test unless the first snapshot of the test is loaded.
func wantOld(tb testing.TB, s *index.Index) {
	tb.Helper()
	got, err := load(s, "memory")
	testkit.Must(tb, err)
	if !equal(got, state("old", 3, 5)) {
		tb.Fatalf("the old snapshot was removed: %d chunks", len(got))
	}
	if at, _ := of(tb, s, "memory"); at != head(1) {
		tb.Fatalf("the snapshot is of entry %d", at.Seq)
	}
}

// TestRestoreThatFails: an error of restore ends Load, and the index stays usable.
func TestRestoreThatFails(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	boom, calls := errors.New("boom"), 0
	_, _, err := s.Load(ctx(), "memory", func([]byte) error { calls++; return boom })
	wantError(t, err, boom)
	if calls != 1 {
		t.Fatalf("restore was called %d times", calls)
	}
	cancelled, cancel := context.WithCancel(ctx())
	cancel()
	_, _, err = s.Load(cancelled, "memory", func([]byte) error { return nil })
	wantError(t, err, context.Canceled)
	wantOld(t, s)
}

// TestSavesAtOnce: concurrent Saves of one name leave one complete state, and concurrent readers get one too.
func TestSavesAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), index.Options{})
	states := make([][][]byte, 4)
	for i := range states {
		states[i] = state(fmt.Sprint("state ", i), 5+i, 100_000)
	}
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 0, puts(states[0]...)))
	var wg sync.WaitGroup
	for i := range states {
		wg.Go(func() {
			for range 3 {
				if err := s.Save(ctx(), "memory", head(1), int64(i), puts(states[i]...)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				got, err := load(s, "memory")
				if err != nil || len(got) < 5 || !equal(got, states[len(got)-5]) {
					t.Errorf("read %d chunks, %v", len(got), err)
				}
				if _, err := s.Ranges(ctx(), index.Filter{Type: "Memory.Set"}, 1, 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, tick := of(t, s, "memory")
	got, err := load(s, "memory")
	testkit.Must(t, err)
	if !equal(got, states[tick]) {
		t.Fatalf("tick %d, %d chunks", tick, len(got))
	}
}

// TestReadDuringSave: during a Save, readers get the old snapshot.
func TestReadDuringSave(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	under, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		<-under
		wantOldOrTell(t, s)
	})
	err := s.Save(ctx(), "memory", head(2), 2, func(put func([]byte) error) error {
		if err := puts(state("new", 100, 100_000)...)(put); err != nil {
			return err
		}
		close(under)
		<-done
		return nil
	})
	wg.Wait()
	testkit.Must(t, err)
}

func wantOldOrTell(t *testing.T, s *index.Index) {
	got, err := load(s, "memory")
	if err != nil || !equal(got, state("old", 3, 5)) {
		t.Errorf("read %d chunks, %v", len(got), err)
	}
	found, err := s.Ranges(ctx(), index.Filter{}, 1, 10)
	if err != nil || len(found) != 1 {
		t.Errorf("ranges %v, %v", found, err)
	}
	mark, err := s.Watermark(ctx())
	if err != nil || mark != (journal.Head{}) {
		t.Errorf("watermark %v, %v", mark, err)
	}
}

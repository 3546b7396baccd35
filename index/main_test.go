package index_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(limitedProcess); path != "" {
		os.Exit(overfill(path))
	}
	os.Exit(testkit.Main(m))
}

// run is a number of entries, in whole blocks.
const run = 16 * index.BlockEntries

// troubles collects the errors that an Index reports.
type troubles struct {
	mu   sync.Mutex
	told []error
}

func (t *troubles) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = append(t.told, err)
}

func (t *troubles) all() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.told)
}

// want fails the test unless exactly one error was reported, of that kind; nil: none.
func (t *troubles) want(tb testing.TB, kind error) {
	tb.Helper()
	told := t.all()
	switch {
	case kind == nil && len(told) > 0:
		tb.Fatalf("reported %v, want nothing", told)
	case kind != nil && (len(told) != 1 || !errors.Is(told[0], kind)):
		tb.Fatalf("reported %v, want one %v", told, kind)
	}
}

func newPath(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "index.db")
}

func open(tb testing.TB, path string, o index.Options) *index.Index {
	tb.Helper()
	s, err := index.Open(path, o)
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Must(tb, s.Close()) })
	return s
}

func wantError(tb testing.TB, err, kind error) {
	tb.Helper()
	if !errors.Is(err, kind) {
		tb.Fatalf("got error %v, want %v", err, kind)
	}
}

// head returns an entry with that seq, whose journal is not read.
func head(seq uint64) journal.Head {
	return journal.Head{Seq: seq, Hash: sha256.Sum256(fmt.Append(nil, seq))}
}

func ctx() context.Context { return context.Background() }

// puts returns a function for Save that writes chunks.
func puts(chunks ...[]byte) func(func([]byte) error) error {
	return func(put func([]byte) error) error {
		for _, c := range chunks {
			if err := put(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// load returns copies of the chunks of a snapshot.
func load(s *index.Index, name string) (chunks [][]byte, err error) {
	_, _, err = s.Load(ctx(), name, func(c []byte) error {
		chunks = append(chunks, slices.Clone(c))
		return nil
	})
	return chunks, err
}

// state returns n chunks of the given size, which have the owner in them.
func state(owner string, n, size int) [][]byte {
	chunks := make([][]byte, n)
	for i := range chunks {
		chunks[i] = fmt.Appendf(nil, "%s %0*d", owner, size, i)
	}
	return chunks
}

func equal(a, b [][]byte) bool { return slices.EqualFunc(a, b, slices.Equal) }

// of returns the entry and the tick of a snapshot.
func of(tb testing.TB, s *index.Index, name string) (journal.Head, int64) {
	tb.Helper()
	at, tick, err := s.Load(ctx(), name, func([]byte) error { return nil })
	testkit.Must(tb, err)
	return at, tick
}

// files lists a directory.
func files(tb testing.TB, dir string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(tb, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

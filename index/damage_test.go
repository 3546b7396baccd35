package index_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestOpenRebuilds: Open rebuilds an unusable index, and reports the reason.
func TestOpenRebuilds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func(t *testing.T, path string)
		want  error
	}{
		"garbage":         {func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("garbage "), 9000)) }, index.ErrDamaged},
		"one byte":        {func(t *testing.T, path string) { write(t, path, []byte{1}) }, nil},
		"empty":           {func(t *testing.T, path string) { write(t, path, nil) }, nil},
		"cut after 100":   {func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 100)) }, index.ErrDamaged},
		"cut to a page":   {func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 4096)) }, index.ErrDamaged},
		"first page gone": {func(t *testing.T, path string) { zero(t, path, 0, 4096) }, index.ErrDamaged},
		"schema zeroed":   {func(t *testing.T, path string) { zero(t, path, 2048, 2048) }, index.ErrDamaged},
		"older format":    {func(t *testing.T, path string) { statement(t, path, "PRAGMA user_version = 0") }, index.ErrFormat},
		"newer format":    {func(t *testing.T, path string) { statement(t, path, "PRAGMA user_version = 99") }, index.ErrFormat},
		"table missing":   {func(t *testing.T, path string) { statement(t, path, "DROP TABLE blocks") }, index.ErrFormat},
		"table too many":  {func(t *testing.T, path string) { statement(t, path, "CREATE TABLE more (a)") }, index.ErrFormat},
		"trigger": {func(t *testing.T, path string) {
			statement(t, path, "CREATE TRIGGER tr AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END")
		}, index.ErrFormat},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			c.spoil(t, filepath.Join(path, "index.db"))
			var told troubles
			s := open(t, path, index.Options{Trouble: told.add})
			told.want(t, c.want)
			wantMark(t, s, 0)
			got, err := load(s, "memory") // a snapshot is a file of its own
			testkit.Must(t, err)
			if !equal(got, filling()) {
				t.Fatal("the snapshot is not what was saved")
			}
			wantUsable(t, s)
			testkit.Must(t, s.Close())
			told = troubles{}
			wantUsable(t, open(t, path, index.Options{Trouble: told.add}))
			told.want(t, nil)
		})
	}
}

// wantUsable fails the test unless a snapshot and a block can be added to the index and read.
func wantUsable(tb testing.TB, s *index.Index) {
	tb.Helper()
	testkit.Must(tb, s.Save(ctx(), "memory", head(1), 1, puts(state("again", 3, 5)...)))
	got, err := load(s, "memory")
	testkit.Must(tb, err)
	if !equal(got, state("again", 3, 5)) {
		tb.Fatal("the loaded snapshot differs from the saved one")
	}
	testkit.Must(tb, s.Drop())
	fill(tb, s, journalOf(run))
	found, err := s.Ranges(ctx(), index.Filter{Correlation: "c-1000"}, 1, 10)
	testkit.Must(tb, err)
	if !slices.Equal(found, []index.Range{{769, 1024}, {4097, index.OpenEnd}}) {
		tb.Fatalf("ranges %v", found)
	}
}

// TestLoadFindsAltered: no chunk of an altered snapshot is restored, nor of one with another name or form.
func TestLoadFindsAltered(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	saved := state("saved", 20, 1000)
	s := open(t, path, index.Options{Form: "a"})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(saved...)))
	file := filepath.Join(path, "memory.snapshot")
	whole, err := os.ReadFile(file)
	testkit.Must(t, err)
	for at := 0; at < len(whole); at += 1 + at/200 {
		altered := slices.Clone(whole)
		altered[at] ^= 1 << (at % 8)
		write(t, file, altered)
		got, err := load(s, "memory")
		wantError(t, err, index.ErrDamaged)
		if len(got) > 0 {
			t.Fatalf("%d chunks were restored with byte %d altered", len(got), at)
		}
	}
	write(t, file, whole)
	write(t, filepath.Join(path, "keys.snapshot"), whole)
	_, err = load(s, "keys")
	wantError(t, err, index.ErrNoSnapshot)
	s.Set(index.Options{Form: "b"})
	_, err = load(s, "memory")
	wantError(t, err, index.ErrNoSnapshot)
	s.Set(index.Options{Form: "a"})
	got, err := load(s, "memory")
	testkit.Must(t, err)
	if !equal(got, saved) {
		t.Fatal("the snapshot is not what was saved")
	}
	write(t, file, bytes.Repeat([]byte{0xff}, 200)) // the checksum does not match, and the length of a chunk has no end
	_, err = load(s, "memory")
	wantError(t, err, index.ErrDamaged)
	wantUsable(t, s)
}

// TestRangesFindsAlteredRows: an altered row causes an error, not an incomplete answer.
func TestRangesFindsAlteredRows(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"block missing":     "DELETE FROM blocks WHERE block = 20",
		"first missing":     "DELETE FROM blocks WHERE block = 1",
		"terms emptied":     "UPDATE blocks SET terms = x'' WHERE block = 20",
		"terms cut":         "UPDATE blocks SET terms = substr(terms, 1, length(terms) - 4) WHERE block = 20",
		"terms of another":  "UPDATE blocks SET terms = (SELECT terms FROM blocks WHERE block = 1) WHERE block = 20",
		"row of another":    "UPDATE blocks SET (hash, earliest, latest, terms, sum) = (SELECT hash, earliest, latest, terms, sum FROM blocks WHERE block = 1) WHERE block = 20",
		"hash altered":      "UPDATE blocks SET hash = zeroblob(32) WHERE block = 20",
		"hash cut":          "UPDATE blocks SET hash = x'00' WHERE block = 20",
		"time altered":      "UPDATE blocks SET latest = latest + 1 WHERE block = 20",
		"sum altered":       "UPDATE blocks SET sum = sum + 1 WHERE block = 20",
		"block below 1":     "UPDATE blocks SET block = -1 WHERE block = 1",
		"terms of no bytes": "UPDATE blocks SET terms = 7 WHERE block = 20",
		"time of no number": "UPDATE blocks SET latest = 'now' WHERE block = 20",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), index.Options{})
			fill(t, s, journalOf(3*run))
			testkit.Must(t, s.Exec(text))
			_, err := s.Ranges(ctx(), index.Filter{Correlation: "c-5000"}, 1, 10)
			wantError(t, err, index.ErrDamaged)
			wantUsable(t, s)
		})
	}
}

// TestBeforeFindsAlteredSpans: an altered span causes an error, not an older token.
func TestBeforeFindsAlteredSpans(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"missing":           "DELETE FROM spans WHERE span = 2",
		"first missing":     "DELETE FROM spans WHERE span = 1",
		"terms emptied":     "UPDATE spans SET holders = x'' WHERE span = 2",
		"row of another":    "UPDATE spans SET (holders, sum) = (SELECT holders, sum FROM spans WHERE span = 1) WHERE span = 2",
		"sum altered":       "UPDATE spans SET sum = sum + 1 WHERE span = 2",
		"terms of no bytes": "UPDATE spans SET holders = 'none' WHERE span = 2",
		"terms of a block":  "UPDATE blocks SET holders = x'' WHERE block = 20",
	}
	tags, changed := journalOf(3*run), uint64(19*index.BlockEntries+7)
	tags[changed-1].Holders = []int64{7}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), index.Options{})
			fill(t, s, tags)
			found, err := s.Before(ctx(), index.Filter{Holder: new(int64(7))}, 3*run, 1)
			testkit.Must(t, err)
			if want := []index.Range{{First: 19*index.BlockEntries + 1, Last: 20 * index.BlockEntries}}; !slices.Equal(found, want) {
				t.Fatalf("the token changes in %v, want %v", found, want)
			}
			testkit.Must(t, s.Exec(text))
			_, err = s.Before(ctx(), index.Filter{Holder: new(int64(8))}, 3*run, 1)
			if name != "terms of a block" { // read only by a search of that span
				wantError(t, err, index.ErrDamaged)
			}
			_, err = s.Before(ctx(), index.Filter{Holder: new(int64(7))}, 3*run, 2)
			wantError(t, err, index.ErrDamaged)
			wantUsable(t, s)
		})
	}
}

// filled returns the path of a closed index with a snapshot and an index in it.
func filled(tb testing.TB) string {
	tb.Helper()
	path := newPath(tb)
	s := open(tb, path, index.Options{})
	testkit.Must(tb, s.Save(ctx(), "memory", head(1), 1, puts(filling()...)))
	fill(tb, s, journalOf(10_000))
	testkit.Must(tb, s.Close())
	return path
}

func filling() [][]byte { return state("filling", 6, 50_000) }

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	testkit.Must(tb, os.WriteFile(path, data, 0o600))
}

func zero(tb testing.TB, path string, from, n int) {
	tb.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(tb, err)
	clear(data[from:min(from+n, len(data))])
	write(tb, path, data)
}

// statement runs a statement in the database of a closed index.
func statement(tb testing.TB, path, text string) {
	tb.Helper()
	s := open(tb, filepath.Dir(path), index.Options{})
	testkit.Must(tb, s.Exec(text))
	testkit.Must(tb, s.Close())
}

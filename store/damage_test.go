package store_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/store"
)

// A file that cannot be used is made anew, with the reason told, and works.
func TestOpenMakesAnew(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func(t *testing.T, path string)
		want  error
	}{
		"garbage":         {func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("garbage "), 9000)) }, store.ErrDamaged},
		"one byte":        {func(t *testing.T, path string) { write(t, path, []byte{1}) }, nil},
		"empty":           {func(t *testing.T, path string) { write(t, path, nil) }, nil},
		"cut after 100":   {func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 100)) }, store.ErrDamaged},
		"cut to a page":   {func(t *testing.T, path string) { testkit.Must(t, os.Truncate(path, 8192)) }, store.ErrDamaged},
		"first page gone": {func(t *testing.T, path string) { zero(t, path, 0, 8192) }, store.ErrDamaged},
		"schema flipped":  {func(t *testing.T, path string) { zero(t, path, 4096, 4096) }, store.ErrDamaged},
		"older format":    {func(t *testing.T, path string) { statement(t, path, "PRAGMA user_version = 0") }, store.ErrFormat},
		"newer format":    {func(t *testing.T, path string) { statement(t, path, "PRAGMA user_version = 99") }, store.ErrFormat},
		"other program":   {func(t *testing.T, path string) { statement(t, path, "PRAGMA application_id = 7") }, store.ErrFormat},
		"table missing":   {func(t *testing.T, path string) { statement(t, path, "DROP TABLE runs") }, store.ErrFormat},
		"table too many":  {func(t *testing.T, path string) { statement(t, path, "CREATE TABLE more (a)") }, store.ErrFormat},
		"trigger": {func(t *testing.T, path string) {
			statement(t, path, "CREATE TRIGGER tr AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
		}, store.ErrFormat},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			c.spoil(t, path)
			var told troubles
			s := open(t, path, store.Options{Trouble: told.tell})
			told.want(t, c.want)
			infos, err := s.Snapshots(ctx())
			testkit.Must(t, err)
			if len(infos) > 0 {
				t.Fatalf("it still has %v", infos)
			}
			wantUsable(t, s)
			testkit.Must(t, s.Close())
			told = troubles{}
			wantUsable(t, open(t, path, store.Options{Trouble: told.tell}))
			told.want(t, nil)
		})
	}
}

// wantUsable wants a store that takes in what it is given.
func wantUsable(tb testing.TB, s *store.Store) {
	tb.Helper()
	testkit.Must(tb, s.Save(ctx(), "memory", head(1), 1, puts(state("again", 3, 5)...)))
	got, err := load(s, "memory")
	testkit.Must(tb, err)
	if !equal(got, state("again", 3, 5)) {
		tb.Fatal("what was saved does not come back")
	}
	testkit.Must(tb, s.DropIndex(ctx()))
	fill(tb, s, journalOf(store.RunEntries))
	found, err := s.Ranges(ctx(), store.Filter{Correlation: "c-1000"}, 1, 10)
	testkit.Must(tb, err)
	if !slices.Equal(found, []store.Range{{769, 1024}, {4097, store.OpenEnd}}) {
		tb.Fatalf("index says %v", found)
	}
}

// A part that was altered, exchanged, left out or put in is found, and none of it is handed on.
func TestLoadFindsAlteredParts(t *testing.T) {
	t.Parallel()
	const two = 1<<32 + 1 // the second part of the first snapshot
	cases := map[string]string{
		"bit of a part":        "UPDATE parts SET data = CAST(substr(data, 1, 100) || x'ff' || substr(data, 102) AS BLOB) WHERE id = ?1",
		"its sum":              "UPDATE parts SET sum = zeroblob(32) WHERE id = ?1",
		"part of another type": "UPDATE parts SET data = 'text' WHERE id = ?1",
		"part missing":         "DELETE FROM parts WHERE id = ?1",
		"last part missing":    "DELETE FROM parts WHERE id = (SELECT max(id) FROM parts) AND ?1",
		"part too many":        "INSERT INTO parts SELECT max(id) + 1, sum, data FROM parts WHERE ?1",
		"parts exchanged": "UPDATE parts SET (sum, data) = (SELECT sum, data FROM parts p WHERE p.id = 2 * ?1 + 1 - parts.id) " +
			"WHERE id IN (?1, ?1 + 1)",
		"entry of the row":  "UPDATE snapshots SET seq = seq + 1 WHERE ?1",
		"hash of the row":   "UPDATE snapshots SET hash = zeroblob(32) WHERE ?1",
		"short hash":        "UPDATE snapshots SET hash = x'00' WHERE ?1",
		"tick of the row":   "UPDATE snapshots SET tick = tick + 1 WHERE ?1",
		"count of the row":  "UPDATE snapshots SET chunks = chunks + 1 WHERE ?1",
		"length of the row": "UPDATE snapshots SET bytes = bytes + 1 WHERE ?1",
		"type of the row":   "UPDATE snapshots SET tick = 'now' WHERE ?1",
		"row twice":         "INSERT INTO snapshots SELECT id + 1, name, seq, hash, tick, parts, chunks, bytes, sum FROM snapshots WHERE ?1",
	}
	saved := state("saved", 20, 100_000)
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), store.Options{})
			testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(saved...)))
			testkit.Must(t, s.Exec(text, two))
			got, err := load(s, "memory")
			wantError(t, err, store.ErrDamaged)
			if !equal(got, saved[:len(got)]) {
				t.Fatal("chunks were handed on that were not saved")
			}
			testkit.Must(t, s.DropSnapshots(ctx()))
			wantUsable(t, s)
		})
	}
}

// An index that was altered is an error, not a shorter answer.
func TestRangesFindsAlteredRuns(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"run missing":     "DELETE FROM runs WHERE run = 2",
		"first missing":   "DELETE FROM runs WHERE run = 1",
		"list emptied":    "UPDATE runs SET correlations = x'' WHERE run = 2",
		"list cut":        "UPDATE runs SET correlations = substr(correlations, 1, length(correlations) - 6) WHERE run = 2",
		"lists mixed up":  "UPDATE runs SET correlations = types WHERE run = 2",
		"runs mixed up":   "UPDATE runs SET correlations = (SELECT correlations FROM runs WHERE run = 1) WHERE run = 2",
		"head altered":    "UPDATE runs SET head = zeroblob(length(head)) WHERE run = 2",
		"head of another": "UPDATE runs SET head = (SELECT head FROM runs WHERE run = 3) WHERE run = 2",
		"run below 1":     "UPDATE runs SET run = -1 WHERE run = 1",
		"other type":      "UPDATE runs SET correlations = 7 WHERE run = 2",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), store.Options{})
			fill(t, s, journalOf(3*store.RunEntries))
			testkit.Must(t, s.Exec(text))
			_, err := s.Ranges(ctx(), store.Filter{Correlation: "c-5000"}, 1, 10)
			wantError(t, err, store.ErrDamaged)
			wantUsable(t, s)
		})
	}
}

// filled returns the path of a closed store with a snapshot and an index in it.
func filled(tb testing.TB) string {
	tb.Helper()
	path := newPath(tb)
	s := open(tb, path, store.Options{})
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
	if binary.BigEndian.Uint16(data[16:]) != 0 && binary.BigEndian.Uint16(data[16:]) != 8192 {
		tb.Fatal("pages are not what this test takes them for")
	}
	write(tb, path, data)
}

func statement(tb testing.TB, path, text string) {
	tb.Helper()
	s := open(tb, path, store.Options{})
	testkit.Must(tb, s.Exec(text))
	testkit.Must(tb, s.Close())
}

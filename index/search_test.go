package index_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// say appends a command of a process.
func (k *kernel) say(tb testing.TB, pid int64, typ, data, outcome string) uint64 {
	tb.Helper()
	seq := k.log.Append(&journal.Entry{
		Time: 1735000000000 + int64(k.log.Written()), PID: pid, Origin: "https://a.test/", Conn: "c-1",
		Request: fmt.Appendf(nil, `{"kind":"command","type":%q,"data":%s,"metadata":{"id":"m","timestamp":1,"correlation":"flow-9"}}`, typ, data),
		Outcome: []byte(outcome),
	})
	testkit.Must(tb, k.log.Flush())
	_, err := k.log.Sync()
	testkit.Must(tb, err)
	return seq
}

const fine = `{"kind":"reply","data":{"success":true}}`

func ask(tb testing.TB, query string, pids ...int64) index.Question {
	tb.Helper()
	phrases, err := schema.ParseSearch(query)
	testkit.Must(tb, err)
	return index.Question{Phrases: phrases, PIDs: pids, Head: 1 << 40, Most: 10}
}

func seqs(docs []index.Document) (of []uint64) {
	for _, d := range docs {
		of = append(of, d.Seq)
	}
	return of
}

// TestSearch: the answer is the same if the index has all, half or none of the journal, or if there is no index.
func TestSearch(t *testing.T) {
	t.Parallel()
	for _, indexed := range []string{"all", "half", "nothing", "no index"} {
		t.Run(indexed, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t)
			o := index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: func(err error) { t.Error(err) }, Name: func(pid int64) string { return fmt.Sprint("agent-", pid) }}
			s := open(t, newPath(t), o)
			fox := k.say(t, 7, "Memory.Set", `{"key":"notes/1","value":"the quick brown Fox"}`, fine)
			bear := k.say(t, 8, "Memory.Set", `{"key":"notes/2","value":{"deep":["slow","brown bear"]}}`, fine)
			no := k.say(t, 8, "Memory.Set", `{"key":"x","value":"[redacted]"}`, `{"kind":"error","data":{"code":403,"message":"pid 8 may not"},"error":"capability.denied"}`)
			intent := k.say(t, 7, "Http.Fetch", `{"url":"https://api.test/zebra"}`, `{"kind":"reply","data":{}}`)
			k.say(t, 0, "Event.Search", `{"query":"zebra fox"}`, `{"kind":"reply"}`)
			k.grow(t, index.BlockEntries)
			if indexed == "half" {
				follow(t, s, k, o)
			}
			end := k.say(t, 0, "Http.Fetched", fmt.Sprintf(`{"intent":%d,"type":"Http.Fetch","pid":7,"ran":true,"outcome":{"kind":"reply","data":1}}`, intent), `{"kind":"reply","data":{"status":502}}`)
			k.grow(t, index.BlockEntries)
			if indexed == "all" {
				follow(t, s, k, o)
			}
			search := s.Search
			if indexed == "no index" {
				search = func(ctx context.Context, q index.Question) ([]index.Document, error) { return index.Scan(ctx, o, 1, q) }
			}
			early := int64(1735000000000)
			late := early + int64(end) - 1
			for _, tt := range []struct {
				q    index.Question
				want []uint64
			}{
				{ask(t, "brown"), []uint64{bear, fox}},
				{ask(t, "brown FOX"), []uint64{fox}},
				{ask(t, `"quick brown" fo*`), []uint64{fox}},
				{ask(t, `"brown quick"`), nil},
				{ask(t, "brown", 8), []uint64{bear}},
				{ask(t, "brown", 9, 10), nil},
				{ask(t, "denied capability"), []uint64{no}},
				{ask(t, "agent 8 flow-9"), []uint64{no, bear}},
				{ask(t, "zebra"), []uint64{end}}, // one document for a call, with the words of its intent and its end; a search has none
				{ask(t, "zebra 502"), []uint64{end}},
				{ask(t, "zebra", 7), []uint64{end}},
				{ask(t, "success who p7"), nil}, // columns without words do not match
				{index.Question{Phrases: ask(t, "brown").Phrases, Head: fox, Most: 10}, []uint64{fox}},
				{index.Question{Phrases: ask(t, "flow-9").Phrases, Head: 1 << 40, Most: 2}, []uint64{end, no}},
				{index.Question{Phrases: ask(t, "flow*").Phrases, Head: 1 << 40, Most: 2}, []uint64{end, no}},
				{index.Question{Phrases: ask(t, "bro*").Phrases, PIDs: []int64{7}, Head: 1 << 40, Most: 1}, []uint64{fox}},
				{index.Question{Phrases: ask(t, "flow*").Phrases, Head: no, Most: 1}, []uint64{no}},
				{index.Question{Phrases: ask(t, "flow*").Phrases, Head: 1 << 40, Most: 10, Since: &late}, []uint64{end}},
				{index.Question{Phrases: ask(t, "flow-9").Phrases, Head: 1 << 40, Most: 10, Since: &late}, []uint64{end}},
				{index.Question{Phrases: ask(t, "brown").Phrases, Head: 1 << 40, Most: 10, Since: &early}, []uint64{bear, fox}},
			} {
				got, err := search(ctx(), tt.q)
				testkit.Must(t, err)
				if !slices.Equal(seqs(got), tt.want) {
					t.Errorf("%+v: got %v, want %v", tt.q, seqs(got), tt.want)
				}
			}
		})
	}
}

// TestFrequency: words, phrases and prefixes are counted.
func TestFrequency(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	o := index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: func(err error) { t.Error(err) }}
	s := open(t, newPath(t), o)
	for range 3 {
		k.say(t, 7, "Memory.Set", `{"key":"a","value":"note zebra"}`, fine)
	}
	k.say(t, 7, "Memory.Set", `{"key":"a","value":"notes zebra"}`, fine)
	k.grow(t, 2*index.BlockEntries)
	follow(t, s, k, o)
	for _, tt := range []struct {
		query string
		most  int
		want  int64
	}{{"zebra", 10, 4}, {"note", 10, 3}, {"note*", 10, 4}, {`"note zebra"`, 10, 3}, {"zeb*", 10, 4}, {"zeb*", 2, 2}, {"zebra", 2, 2}, {"lion*", 10, 0}} {
		if got := testkit.Value(s.Frequency(ctx(), &ask(t, tt.query).Phrases[0], tt.most))(t); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.query, got, tt.want)
		}
	}
	// A prefix is counted in the newest documents and extrapolated; documents that were not counted are found.
	k.grow(t, 10_000)
	follow(t, s, k, o)
	mark := testkit.Value(s.Searchable(ctx()))(t)
	if got := testkit.Value(s.Frequency(ctx(), &ask(t, "memo*").Phrases[0], 1<<20))(t); got != int64(mark.Seq) {
		t.Errorf("memo*: %d, want %d", got, mark.Seq)
	}
	if got := testkit.Value(s.Search(ctx(), ask(t, "zeb*")))(t); len(got) != 4 {
		t.Errorf("zeb*: found %v", seqs(got))
	}
}

// TestForget: after Forget no file of the index has the old text of a rewritten entry.
func TestForget(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	path := newPath(t)
	o := index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: func(err error) { t.Error(err) }}
	s := open(t, path, o)
	const secret, marker = `"hunter2secret"`, `"rewrittenxxxx"`
	intent := k.say(t, 7, "Http.Fetch", `{"url":"https://a.test/","body":`+secret+`}`, `{"kind":"reply","data":{}}`)
	k.grow(t, 4*index.BlockEntries) // so that no reader checks the chain across the changed line
	k.say(t, 0, "Http.Fetched", fmt.Sprintf(`{"intent":%d,"type":"Http.Fetch","pid":7,"ran":true,"outcome":{"kind":"reply","data":1}}`, intent), fine)
	k.grow(t, 8*index.BlockEntries)
	follow(t, s, k, o)
	if !holds(t, path, "hunter2secret") {
		t.Fatal("the index does not have the secret before Forget")
	}
	rewrite(t, k, []byte(secret), []byte(marker))
	testkit.Must(t, s.Forget(ctx(), intent))
	if holds(t, path, "hunter2secret") {
		t.Error("a file of the index has the secret")
	}
	for query, want := range map[string]int{"hunter2secret": 0, "rewrittenxxxx": 1} {
		got, err := s.Search(ctx(), ask(t, query))
		testkit.Must(t, err)
		if len(got) != want {
			t.Errorf("%s: %d calls, want %d", query, len(got), want)
		}
	}
	testkit.Must(t, s.Forget(ctx(), intent)) // a second call succeeds, also for an entry without a document
	testkit.Must(t, s.Forget(ctx(), 1<<40))
}

func rewrite(tb testing.TB, k *kernel, from, to []byte) {
	tb.Helper()
	name := filepath.Join(k.dir, "00000000000000000001.ndjson")
	data, err := os.ReadFile(name)
	testkit.Must(tb, err)
	testkit.Must(tb, os.WriteFile(name, bytes.Replace(data, from, to, 1), 0o600))
}

func holds(tb testing.TB, dir, text string) bool {
	tb.Helper()
	for _, name := range files(tb, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		testkit.Must(tb, err)
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

// TestCloseAfterCancel: after a cancelled write, Close closes everything, so SQLite removes its logs.
func TestCloseAfterCancel(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	for range 100 {
		s := open(t, path, index.Options{})
		ctx, cancel := context.WithCancel(ctx())
		wantError(t, s.Transact(ctx, func(*sql.Tx) error {
			cancel()
			for range 1000 { // so that database/sql detects the cancellation
				runtime.Gosched()
			}
			return ctx.Err()
		}), context.Canceled)
		testkit.Must(t, s.Close())
		if got := files(t, path); !slices.Equal(got, []string{"index.db", "search.db"}) {
			t.Fatalf("files after Close: %v", got)
		}
	}
}

// TestSearchOfDamagedFile: if SQLite reports damage, Search drops the file and reads the journal.
func TestSearchOfDamagedFile(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	path := newPath(t)
	var told troubles
	o := index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: told.add}
	s := open(t, path, o)
	seq := k.say(t, 7, "Memory.Set", `{"key":"k","value":"needle"}`, fine)
	k.grow(t, 4*index.BlockEntries)
	follow(t, s, k, o)
	testkit.Must(t, s.Close())
	file := filepath.Join(path, "search.db")
	info, err := os.Stat(file)
	testkit.Must(t, err)
	zero(t, file, 4096, int(info.Size())-4096)
	s = open(t, path, o)
	s.Set(o)
	got, err := s.Search(ctx(), ask(t, "needle"))
	testkit.Must(t, err)
	if !slices.Equal(seqs(got), []uint64{seq}) {
		t.Fatalf("found %v, want %d", seqs(got), seq)
	}
	told.want(t, index.ErrDamaged)
}

// TestRank: rare and repeated phrases raise the score, long texts lower it, and of equal scores the newest is first.
func TestRank(t *testing.T) {
	t.Parallel()
	text := func(s string) schema.Words { return schema.Words(nil).AppendText(s) }
	docs := []index.Document{
		{Seq: 1, Data: text("often rare filler filler")},
		{Seq: 2, Data: text("often often rare filler")},
		{Seq: 3, Data: text("often rare rare filler")},
		{Seq: 4, Data: text("often rare filler filler")},
		{Seq: 5, Data: text("often rare filler filler filler filler filler filler")},
	}
	phrases, err := schema.ParseSearch("often rare")
	testkit.Must(t, err)
	var order []uint64
	for _, r := range index.Rank(docs, phrases, index.Corpus{Documents: 1000, Having: []int64{900, 5}}) {
		order = append(order, r.Document.Seq)
	}
	if want := []uint64{3, 2, 4, 1, 5}; !slices.Equal(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
}

package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// line is an entry of a test: a message without its metadata, and its outcome.
type line struct{ kind, typ, data, outcome string }

const done = `{"kind":"reply","data":{}}`

func set(key, value string) line {
	return line{"command", "Memory.Set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), done}
}

func (l line) entry(n int) *journal.Entry {
	return &journal.Entry{
		Time: 1735000000000, Tick: int64(n), PID: 7, Conn: "c1", LatencyUS: 3, Outcome: []byte(l.outcome),
		Request: fmt.Appendf(nil, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"m%d","timestamp":1}}`, l.kind, l.typ, l.data, n),
	}
}

// write makes a journal of these lines.
func write(t *testing.T, lines ...line) (log *journal.Log, dir string) {
	t.Helper()
	dir = filepath.Join(testkit.Dir(t), "journal")
	log, _, err := journal.Open(journal.Options{Dir: dir})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, log.Close()) })
	for i, l := range lines {
		log.Append(l.entry(i + 1))
	}
	testkit.Must(t, log.Flush())
	testkit.Value(log.Sync())(t)
	return log, dir
}

// TestRecall: what is encoded is recalled, as far as the journal keeps it.
func TestRecall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		line    line
		data    string
		failed  *fault.Fault
		repeats uint64
		kept    string // of the outcome's data
	}{
		{"a command", set("a", "1"), `{}`, nil, 0, `{}`},
		{"a failed command", set("a", "1"), ``, fault.CapabilityNotYours.New("no"), 0, ``},
		{"a repeated command", set("a", "1"), `{}`, nil, 4, `{}`},
		{"a query, without its answer", line{kind: "query", typ: "Memory.Get", data: `{"key":"a"}`}, `{"value":"secret"}`, nil, 0, ``},
		{"a failed query", line{kind: "query", typ: "Memory.Get", data: `{"key":"a"}`}, ``, fault.MemoryNotFound.New("no"), 0, ``},
	} {
		msg, invalid := schema.Decode(c.line.entry(1).Request, schema.OsMessage)
		if invalid != nil {
			t.Fatal(invalid)
		}
		row, _ := schema.Lookup(msg.Type)
		input, invalid := row.Input().Decode(msg.Data)
		if invalid != nil {
			t.Fatal(invalid)
		}
		call := kernel.NewCall(kernel.Request{Caller: kernel.Caller{Conn: "c1"}, Message: msg, Syscall: row, Input: input}, kernel.Moment{Tick: 5, Time: 6})
		call.PID, call.Origin, call.Data, call.Err = 7, "os:///", []byte(c.data), c.failed
		var encoder record.Encoder
		entry := *encoder.Entry(&call, c.repeats)
		testkit.Must(t, entry.Check())
		if c.kept == "" && bytes.Contains(entry.Outcome, []byte("secret")) {
			t.Errorf("%s: the journal has %s", c.what, entry.Outcome)
		}
		got := testkit.Value(record.Recall(&journal.Record{Seq: 9, Entry: entry}))(t)
		if got.Message.Type != msg.Type || got.Syscall != row || got.PID != 7 || got.Origin != "os:///" || got.Tick != 5 || got.Time != 6 || got.Proof.Seq != 9 {
			t.Errorf("%s: recalled %+v", c.what, got)
		}
		if string(got.Data) != c.kept || (got.Err == nil) != (c.failed == nil) || got.Err != nil && got.Err.ID != c.failed.ID || got.Repeated != (c.repeats != 0) {
			t.Errorf("%s: outcome %s, %v, repeated %t", c.what, got.Data, got.Err, got.Repeated)
		}
	}
}

// broken are entries that no kernel of this version has written. Each is valid JSON, since a reader returns no others.
var broken = []struct {
	what, request, outcome, want string
}{
	{"nothing", `null`, done, "decode request"},
	{"a number", `1`, done, "decode request"},
	{"a text", `"x"`, done, "decode request"},
	{"a list", `[1]`, done, "decode request"},
	{"an empty object", `{}`, done, "decode request"},
	{"no metadata", `{"kind":"command","type":"Memory.Set","data":{}}`, done, "decode request"},
	{"a kind of another type", `{"kind":1,"type":2}`, done, "decode request"},
	{"a newer kernel's command", string(line{kind: "command", typ: "Memory.Paint", data: "{}"}.entry(1).Request), done, "no syscall is named Memory.Paint: the journal was written by a newer kernel"},
	{"no outcome", string(set("a", "1").entry(1).Request), `null`, "decode outcome"},
	{"a number for a kind", string(set("a", "1").entry(1).Request), `{"kind":1,"error":1,"details":1,"causes":{},"approved":[]}`, "decode outcome"},
	{"an outcome of another kind", string(set("a", "1").entry(1).Request), `{"kind":"event"}`, "decode outcome"},
	{"a list for an outcome", string(line{kind: "query", typ: "Memory.Get", data: "{}"}.entry(1).Request), `[]`, "decode outcome"},
	{"a success without a key", string(line{kind: "command", typ: "Memory.Set", data: `{"value":1}`}.entry(1).Request), done, "decode data"},
}

func TestRecallRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range broken {
		call, err := record.Recall(&journal.Record{Seq: 1, Entry: journal.Entry{Request: []byte(c.request), Outcome: []byte(c.outcome)}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", c.what, call, err, c.want)
		}
	}
	// The data of a failed call may be redacted, and a query of a newer kernel has changed nothing.
	failed := line{"command", "Memory.Set", `{"value":1}`, string(schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: fault.CapabilityNotYours.New("no")}))}
	newer := line{"query", "Memory.Count", `{}`, `{"kind":"reply"}`}
	for _, l := range []line{failed, newer} {
		if _, err := record.Recall(&journal.Record{Seq: 1, Entry: *l.entry(1)}); err != nil {
			t.Errorf("%s: %v", l.typ, err)
		}
	}
}

// FuzzRecall: any two JSON values are recalled or refused.
func FuzzRecall(f *testing.F) {
	for _, c := range broken {
		f.Add([]byte(c.request), []byte(c.outcome))
	}
	f.Add(set("a", "1").entry(1).Request, []byte(done))
	f.Fuzz(func(t *testing.T, request, outcome []byte) {
		if !jsontype.Valid(request) || !jsontype.Valid(outcome) {
			return
		}
		call, err := record.Recall(&journal.Record{Seq: 1, Entry: journal.Entry{Request: bytes.TrimSpace(request), Outcome: bytes.TrimSpace(outcome)}})
		if (call == nil) != (err != nil) {
			t.Fatalf("%+v, %v", call, err)
		}
	})
}

// applied is a domain that remembers the entries that it has applied.
type applied struct {
	kernel.Domain
	seqs []uint64
}

func (a *applied) Apply(call *kernel.Call) { a.seqs = append(a.seqs, call.Proof.Seq) }

// history is a journal in which entries 1, 5 and 6 change the memory.
func history() []line {
	failed := string(schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: fault.CapabilityNotYours.New("no")}))
	repeated := string(schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: []byte("{}"), Repeats: 1}))
	refused, again := set("a", "refused"), set("a", "1")
	refused.outcome, again.outcome = failed, repeated
	return []line{
		set("a", "1"), refused, again,
		{"query", "Memory.Get", `{"key":"a"}`, `{"kind":"reply"}`},
		set("b", "2"),
		{"command", "Memory.Delete", `{"key":"a"}`, done},
	}
}

// replayed are the entries that Replay and Fold apply to the memory, which must be the same.
func replayed(t *testing.T, dir string, made record.Position, limit uint64) (seqs []uint64, seen int, err error) {
	t.Helper()
	run := func(with func(*journal.Reader, map[schema.Domain]kernel.Domain, map[schema.Domain]record.Position) error) ([]uint64, error) {
		reader := journal.NewReader(journal.OSFS{}, dir, journal.ReaderOptions{Limit: func() uint64 { return limit }})
		defer reader.Close() // read only
		var a applied
		err := with(reader, map[schema.Domain]kernel.Domain{schema.Memory: &a}, map[schema.Domain]record.Position{schema.Memory: made})
		return a.seqs, err
	}
	seqs, err = run(func(r *journal.Reader, d map[schema.Domain]kernel.Domain, made map[schema.Domain]record.Position) error {
		return record.Replay(testkit.Context(t), r, d, made, func(*kernel.Call) { seen++ })
	})
	folded, foldErr := run(func(r *journal.Reader, d map[schema.Domain]kernel.Domain, made map[schema.Domain]record.Position) error {
		return record.Fold(testkit.Context(t), r, d, made, func(*journal.Record, *kernel.Call) error { return nil })
	})
	if !slices.Equal(seqs, folded) || (err == nil) != (foldErr == nil) {
		t.Errorf("Replay applies %v (%v), Fold %v (%v)", seqs, err, folded, foldErr)
	}
	return seqs, seen, err
}

// TestReplay: successful commands are applied once, in order, from where a snapshot ends to where the caller says.
func TestReplay(t *testing.T) {
	t.Parallel()
	_, dir := write(t, history()...)
	for _, c := range []struct {
		made  record.Position
		limit uint64
		want  []uint64
	}{
		{record.Position{}, 99, []uint64{1, 5, 6}},
		{record.Position{Seq: 1}, 99, []uint64{5, 6}},
		{record.Position{Seq: 5}, 99, []uint64{6}},
		{record.Position{Seq: 99}, 99, nil},
		{record.Position{}, 5, []uint64{1, 5}},
	} {
		got, seen, err := replayed(t, dir, c.made, c.limit)
		if err != nil || !slices.Equal(got, c.want) || seen != int(min(c.limit, 6)) {
			t.Errorf("from %d to %d: applied %v, saw %d, %v; want %v", c.made.Seq, c.limit, got, seen, err, c.want)
		}
	}
}

// TestReplayOfDamage: a line that was not written whole is not there; one that was changed, that is another journal's, or
// that this kernel does not know ends the replay with its number, before it is applied.
func TestReplayOfDamage(t *testing.T) {
	t.Parallel()
	segment := func(dir string) string { return testkit.Value(filepath.Glob(filepath.Join(dir, "0*.ndjson")))(t)[0] }
	for what, c := range map[string]struct {
		lines  []line
		damage func(all []string, foreign []string) []string
		want   []uint64
		fails  string
	}{
		"torn":    {history(), func(all, _ []string) []string { return append(all[:5:5], all[5][:40]) }, []uint64{1, 5}, ""},
		"changed": {history(), func(all, _ []string) []string { all[4] = strings.Replace(all[4], `"2"`, `"3"`, 1); return all }, []uint64{1, 5}, "journal"},
		"foreign": {history(), func(all, foreign []string) []string { all[4] = foreign[4]; return all }, []uint64{1}, "journal"},
		"newer":   {append(history()[:1:1], line{"command", "Memory.Paint", `{}`, done}), nil, []uint64{1}, "entry 2: no syscall is named Memory.Paint"},
	} {
		_, dir := write(t, c.lines...)
		if c.damage != nil {
			others := history()
			others[0] = set("other", "1")
			_, other := write(t, others...)
			lines := func(dir string) []string {
				return strings.SplitAfter(strings.TrimSuffix(testkit.ReadFile(t, segment(dir)), "\n"), "\n")
			}
			copied := filepath.Join(testkit.Dir(t), "journal")
			testkit.Must(t, os.Mkdir(copied, 0o700))
			all := lines(dir)
			all[len(all)-1] += "\n"
			testkit.WriteFile(t, filepath.Join(copied, filepath.Base(segment(dir))), strings.Join(c.damage(all, lines(other)), ""))
			dir = copied
		}
		got, _, err := replayed(t, dir, record.Position{}, 99)
		if !slices.Equal(got, c.want) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: applied %v, %v; want %v, %q", what, got, err, c.want, c.fails)
		}
	}
}

// TestFoldEnds: the caller's error ends a fold, and so does the end of its context.
func TestFoldEnds(t *testing.T) {
	t.Parallel()
	_, dir := write(t, history()...)
	fold := func(ctx context.Context, passed func(*journal.Record, *kernel.Call) error) error {
		reader := journal.NewReader(journal.OSFS{}, dir, journal.ReaderOptions{})
		defer reader.Close() // read only
		return record.Fold(ctx, reader, nil, nil, passed)
	}
	enough := errors.New("enough")
	passes := 0
	if err := fold(testkit.Context(t), func(*journal.Record, *kernel.Call) error { passes++; return enough }); !errors.Is(err, enough) || passes != 1 {
		t.Errorf("%v after %d entries", err, passes)
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	if err := fold(ctx, func(*journal.Record, *kernel.Call) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// nobody is a process table without processes.
type nobody struct{}

func (nobody) Process(int64) *schema.Descriptor { return nil }

// TestView: entries are found by their number, by the key that they change, and by their words; what is not there is named.
func TestView(t *testing.T) {
	t.Parallel()
	log, dir := write(t, append(history(), set("b", "needle"))...)
	v := &record.View{
		Files: journal.OSFS{}, Dir: dir, Journal: log, Processes: nobody{}, Gate: new(kernel.Gate), Logger: slog.New(slog.DiscardHandler),
		Look: func(context.Context) (record.Extent, error) { return record.Extent{Head: log.Head().Seq}, nil },
	}
	operator := kernel.NewCall(kernel.Request{}, kernel.Moment{})
	all := func(int64) bool { return true }
	show := func(in schema.AuditShowInput) string {
		out, err := v.Show(testkit.Context(t), &operator, &in, all)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(out.Entry.Seq, " ", out.Entry.Type)
	}
	number := func(n int64) schema.AuditShowInput { return schema.AuditShowInput{Seq: &n} }
	key := func(k string) schema.AuditShowInput { return schema.AuditShowInput{Key: &k} }
	for _, c := range []struct {
		in   schema.AuditShowInput
		want string
	}{
		{number(1), "1 Memory.Set"},
		{number(7), "7 Memory.Set"},
		{number(8), "the record has no entry 8: the last one is 7"},
		{key("a"), "6 Memory.Delete"},
		{key("b"), "7 Memory.Set"},
		{key("c"), "c"},
	} {
		if got := show(c.in); !strings.Contains(got, c.want) {
			t.Errorf("shown %q, want %q", got, c.want)
		}
	}
	for query, want := range map[string][]int64{"needle": {7}, "refused": {2}, "nowhere": nil} {
		phrases := testkit.Value(schema.ParseSearch(query))(t)
		out := testkit.Value(v.Search(testkit.Context(t), &operator, &schema.EventSearchInput{Query: query}, phrases, nil))(t)
		var got []int64
		for _, e := range out.Events {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", query, got, want)
		}
	}
}

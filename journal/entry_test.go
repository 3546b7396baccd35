package journal_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// The line of PROTOCOL 7, member by member, and the chain as sha256sum computes it.
func TestLineLayout(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	l.Append(&journal.Entry{
		Time: 1735000000000, Tick: 3, PID: 7, Origin: "https://my-os.local/", Conn: "c-5",
		Request: []byte(`{"kind":"query"}`), LatencyUS: 14,
	})
	l.Append(&journal.Entry{
		Time: -1, Tick: math.MinInt64, PID: math.MaxInt64, Origin: "a\"b\\c\n\x00\x7f\xffé\u2028\xed\xa0\x80",
		Request: []byte(`"x"`), Outcome: []byte("[ 1,\t2.5e-3 ]"),
	})
	testkit.Must(t, l.Flush())
	want := `{"seq":1,"prev":"` + strings.Repeat("0", 64) + `","time":1735000000000,"tick":3,"pid":7,` +
		`"origin":"https://my-os.local/","conn":"c-5","request":{"kind":"query"},"outcome":null,"latency_us":14}` + "\n" +
		`{"seq":2,"prev":"db0be53dd31a359ac8909d5870350ee2ab8e66e9f9954fe4a2a3dc5010a19ba4","time":-1,` +
		`"tick":-9223372036854775808,"pid":9223372036854775807,` +
		`"origin":"a\"b\\c\u000a\u0000` + "\x7f\uFFFDé\u2028\uFFFD\uFFFD\uFFFD" + `","conn":"",` +
		`"request":"x","outcome":[ 1,` + "\t" + `2.5e-3 ],"latency_us":0}` + "\n"
	if diff := cmp.Diff(want, segments(disk.Image())); diff != "" {
		t.Error(diff)
	}
}

func TestParseLineReadsWhatAppendWrites(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	want := journal.Entry{
		Time: 1, Tick: -2, PID: math.MinInt64, Origin: "tab\tquote\"slash\\é\x01", Conn: "\x1f",
		Request: []byte(`{"a":["}",{"b":"\\\""}]}`), Outcome: []byte("-0.5E+2"), LatencyUS: math.MaxInt64,
	}
	l.Append(&want)
	testkit.Must(t, l.Flush())
	var r journal.Record
	testkit.Must(t, journal.ParseLine([]byte(strings.TrimSuffix(segments(disk.Image()), "\n")), &r))
	if diff := cmp.Diff(want, r.Entry); diff != "" {
		t.Error(diff)
	}
	if r.Seq != 1 || r.Prev != (journal.Hash{}) {
		t.Errorf("got entry %d after %s", r.Seq, r.Prev)
	}
}

const goodLine = `{"seq":1,"prev":"00000000000000000000000000000000000000000000000000000000000000ab","time":2,"tick":3,` +
	`"pid":4,"origin":"o","conn":"c","request":{},"outcome":[],"latency_us":5}`

func TestParseLineIsStrict(t *testing.T) {
	t.Parallel()
	testkit.Must(t, journal.ParseLine([]byte(goodLine), new(journal.Record)))
	for name, change := range map[string][2]string{
		"empty":                   {goodLine, ""},
		"space":                   {`,"time"`, `, "time"`},
		"order":                   {`"tick":3,"pid":4`, `"pid":4,"tick":3`},
		"member missing":          {`"tick":3,`, ``},
		"member twice":            {`"tick":3,`, `"tick":3,"tick":3,`},
		"member added":            {`"latency_us":5`, `"latency_us":5,"x":1`},
		"after the end":           {`5}`, `5} `},
		"cut":                     {`5}`, `5`},
		"seq zero":                {`"seq":1`, `"seq":0`},
		"seq negative":            {`"seq":1`, `"seq":-1`},
		"seq too large":           {`"seq":1`, `"seq":18446744073709551616`},
		"leading zero":            {`"time":2`, `"time":02`},
		"minus zero":              {`"time":2`, `"time":-0`},
		"plus":                    {`"time":2`, `"time":+2`},
		"fraction":                {`"time":2`, `"time":2.0`},
		"no number":               {`"time":2`, `"time":`},
		"too large":               {`"time":2`, `"time":9223372036854775808`},
		"too small":               {`"time":2`, `"time":-9223372036854775809`},
		"hash in capitals":        {`00ab"`, `00AB"`},
		"hash short":              {`00ab"`, `ab"`},
		"hash long":               {`00ab"`, `0000ab"`},
		"string not closed":       {`"conn":"c",`, `"conn":"c,`},
		"string is a number":      {`"conn":"c"`, `"conn":7`},
		"escape not needed":       {`"o"`, `"\u006f"`},
		"escape in capitals":      {`"o"`, `"\u001F"`},
		"escape in another form":  {`"o"`, `"\n"`},
		"escape of a slash":       {`"o"`, `"\/"`},
		"escape cut":              {`"o"`, `"\u00`},
		"control character":       {`"o"`, "\"\t\""},
		"bytes that are not text": {`"o"`, "\"\xff\""},
		"surrogate as bytes":      {`"o"`, "\"\xed\xa0\x80\""},
		"request missing":         {`{}`, ``},
		"request with space":      {`{}`, ` {}`},
		"request then space":      {`{}`, `{} `},
		"request not closed":      {`{}`, `{`},
		"outcome two values":      {`[]`, `[][]`},
	} {
		line := strings.Replace(goodLine, change[0], change[1], 1)
		if line == goodLine {
			t.Fatalf("%s: nothing changed", name)
		}
		if err := journal.ParseLine([]byte(line), new(journal.Record)); err == nil {
			t.Errorf("%s: %s was read", name, line)
		}
	}
}

func TestParseLineAllocatesNothing(t *testing.T) {
	var r journal.Record
	line := []byte(goodLine)
	testkit.Must(t, journal.ParseLine(line, &r))
	if n := testing.AllocsPerRun(100, func() { _ = journal.ParseLine(line, &r) }); n > 0 {
		t.Errorf("%v allocations a line", n)
	}
}

// A line that can be read is the only encoding of its entry: appended again, it has the same bytes.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Add([]byte(strings.Replace(goodLine, `"o"`, `"\u0000\"\\é"`, 1)))
	f.Add([]byte(strings.Replace(goodLine, `{}`, `{"a":[1,-2.5e9,"\ud83d\ude00",true,false,null,{}]}`, 1)))
	f.Add([]byte(strings.Replace(goodLine, `"time":2`, `"time":-9223372036854775808`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r journal.Record
		if journal.ParseLine(b, &r) != nil {
			return
		}
		if bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, 0) >= 0 {
			t.Fatalf("read a line with a line feed or NUL in it: %q", b)
		}
		if err := r.Check(); err != nil {
			t.Fatalf("read what could not be written: %v", err)
		}
		if got := line(r.Seq, r.Prev, quoted(&r.Entry)); got != string(b) {
			t.Fatalf("read  %s\nwrote %s", b, got)
		}
	})
}

package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
)

func TestList(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	for _, key := range []string{"b", "a/2", "a/10", "a", "ab/1", "processes", `q"`} {
		if _, err := run(t, d, 1, home, "Memory.Set", `{"key":`+quoted(key)+`,"value":0}`); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ data, want string }{
		{`{}`, `{"keys":["/a","/a/10","/a/2","/ab/1","/b","/processes","/q\""]}`},
		{`null`, `{"keys":["/a","/a/10","/a/2","/ab/1","/b","/processes","/q\""]}`},
		{`{"prefix":""}`, `{"keys":["/a","/a/10","/a/2","/ab/1","/b","/processes","/q\""]}`},
		{`{"prefix":"/","limit":7}`, `{"keys":["/a","/a/10","/a/2","/ab/1","/b","/processes","/q\""]}`},
		{`{"prefix":"a"}`, `{"keys":["/a","/a/10","/a/2","/ab/1"]}`},
		{`{"prefix":"/a/"}`, `{"keys":["/a/10","/a/2"]}`},
		{`{"prefix":"proc"}`, `{"keys":["/processes"]}`},
		{`{"prefix":"x"}`, `{"keys":[]}`},
		{`{"prefix":"//"}`, `{"keys":[]}`},
		{`{"limit":2}`, `{"keys":["/a","/a/10"],"next":"/a/10"}`},
		{`{"limit":2,"cursor":"/a/10"}`, `{"keys":["/a/2","/ab/1"],"next":"/ab/1"}`},
		{`{"limit":2,"cursor":"a/10","prefix":"a/"}`, `{"keys":["/a/2"]}`},
		{`{"cursor":"a/11"}`, `{"keys":["/a/2","/ab/1","/b","/processes","/q\""]}`},
		{`{"cursor":"zzz"}`, `{"keys":[]}`},
		{`{"cursor":"0","prefix":"b"}`, `{"keys":["/b"]}`},
		{`{"cursor":"c","prefix":"b"}`, `{"keys":[]}`},
	} {
		if got, err := run(t, d, 1, home, "Memory.List", tc.data); err != nil || got != tc.want {
			t.Errorf("%s: %s, %v, want %s", tc.data, got, err, tc.want)
		}
	}
}

// TestListIsCutOffToFitALine lists the longest keys, of the characters with the longest escapes.
func TestListIsCutOffToFitALine(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", `"`, `\`, "é"} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			var want []string
			for i := range 100 {
				key := fmt.Sprintf("%04d", i) + strings.Repeat(unit, 1020/len(unit))
				want = append(want, "/"+key)
				store(t, d, key, "0")
			}
			got, pages := listAll(t, d, `"limit":1000`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if pages < 7 || pages > 20 {
				t.Errorf("%d pages", pages)
			}
		})
	}
}

// listAll reads all pages, and checks that every one fits a line.
func listAll(t rapid.TB, d *memory.Domain, members string) (keys []string, pages int) {
	t.Helper()
	cursor := ""
	for {
		result, err := d.Decide(request(t, 1, home, "Memory.List", `{`+members+cursor+`}`))
		if err == nil && result.Read != nil {
			result, err = result.Read(context.Background())
		}
		testkit.Must(t, err)
		if len(result.Data) > kernel.MaxData {
			t.Fatalf("a page of %d bytes", len(result.Data))
		}
		var page schema.MemoryListOutput
		testkit.Must(t, json.Unmarshal(result.Data, &page))
		pages++
		keys = append(keys, page.Keys...)
		if page.Next == "" {
			return keys, pages
		}
		if len(page.Keys) == 0 || page.Next != page.Keys[len(page.Keys)-1] {
			t.Fatalf("next %q after %q", page.Next, page.Keys)
		}
		cursor = `,"cursor":` + quoted(page.Next)
	}
}

func store(t rapid.TB, d *memory.Domain, key, value string) {
	t.Helper()
	call := request(t, 1, home, "Memory.Set", `{"key":`+quoted(key)+`,"value":`+value+`}`)
	if _, err := d.Decide(call); err != nil {
		t.Fatal(err)
	}
	domaintest.Apply(d, call, call.Data)
}

// TestPagesStayGood deletes and adds between two pages: a key that exists all the time is neither missed nor
// repeated.
func TestPagesStayGood(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	for i := range 10 {
		store(t, d, fmt.Sprintf("k/%d", i), "0")
	}
	first, err := run(t, d, 1, home, "Memory.List", `{"limit":4}`)
	if want := `{"keys":["/k/0","/k/1","/k/2","/k/3"],"next":"/k/3"}`; err != nil || first != want {
		t.Fatalf("%s, %v", first, err)
	}
	for _, data := range []string{`{"key":"k/3"}`, `{"key":"k/5"}`} {
		if _, err := run(t, d, 1, home, "Memory.Delete", data); err != nil {
			t.Fatal(err)
		}
	}
	store(t, d, "k/00", "0")
	store(t, d, "k/40", "0")
	rest, err := run(t, d, 1, home, "Memory.List", `{"cursor":"/k/3"}`)
	if want := `{"keys":["/k/4","/k/40","/k/6","/k/7","/k/8","/k/9"]}`; err != nil || rest != want {
		t.Errorf("%s, %v, want %s", rest, err, want)
	}
}

func TestListDefaultsToAHundred(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	var want []string
	for i := range 250 {
		key := fmt.Sprintf("%03d", i)
		want = append(want, "/"+key)
		store(t, d, key, "0")
	}
	got, pages := listAll(t, d, `"prefix":""`)
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages of %q", pages, got)
	}
}

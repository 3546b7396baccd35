package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema/fault"
)

// model is the store in its simplest form: values by origin and key.
type model map[[2]string]string

// keys are those of an origin that begin with prefix, sorted, as an answer of Memory.List without a limit.
func (m model) keys(origin, prefix string) string {
	var keys []string
	for at := range m {
		if at[0] == origin && strings.HasPrefix(at[1], prefix) {
			keys = append(keys, quoted("/"+at[1]))
		}
	}
	slices.Sort(keys)
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

func (m model) meminfo(origin string) string {
	count, size := 0, 0
	for at, value := range m {
		if at[0] == origin {
			count++
			size += len(at[1]) + len(value)
		}
	}
	return fmt.Sprintf(`{"keys":%d,"bytes":%d}`, count, size)
}

// TestModel runs random calls beside the model. At the end, a replay of the commands and a restored snapshot must
// give the same state.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := newDomain(r, nil)
		m := model{}
		var journal []*kernel.Call
		for range rapid.IntRange(1, 60).Draw(r, "calls") {
			origin := rapid.SampledFrom([]string{home, other, ""}).Draw(r, "origin")
			key := rapid.StringMatching(`[ab](/[ab]){0,2}`).Draw(r, "key")
			value := rapid.SampledFrom([]string{`1`, `"two"`, `{ "a" : null }`, `[]`}).Draw(r, "value")
			at := [2]string{origin, key}
			switch rapid.IntRange(0, 6).Draw(r, "what") {
			case 0, 1, 2:
				data := `{"key":"/` + key + `","value":` + value + `}`
				want(r, d, origin, "Memory.Set", data, `{"success":true}`)
				journal = append(journal, request(r, 1, origin, "Memory.Set", data))
				m[at] = value
			case 3:
				data := `{"key":"` + key + `"}`
				if _, ok := m[at]; !ok {
					want(r, d, origin, "Memory.Delete", data, "Key not found: "+key)
					continue
				}
				want(r, d, origin, "Memory.Delete", data, `{"success":true}`)
				journal = append(journal, request(r, 1, origin, "Memory.Delete", data))
				delete(m, at)
			case 4:
				answer, ok := m[at]
				if !ok {
					answer = "Key not found: " + key
				}
				want(r, d, origin, "Memory.Get", `{"key":"`+key+`"}`, answer)
			case 5:
				want(r, d, origin, "Memory.List", `{"prefix":"`+key+`","limit":1000}`, m.keys(origin, key))
			case 6:
				expected := rapid.SampledFrom([]string{"", `1`, `"two"`, `{"a":null}`}).Draw(r, "expected")
				data := `{"key":"` + key + `","value":` + value + `}`
				if expected != "" {
					data = `{"key":"` + key + `","expected":` + expected + `,"value":` + value + `}`
				}
				if expected != strings.ReplaceAll(m[at], " ", "") {
					if _, err := run(r, d, 1, origin, "Memory.CompareAndSet", data); !errors.Is(err, fault.MemoryChanged) {
						r.Fatalf("%s on %s: %v", data, m[at], err)
					}
					continue
				}
				want(r, d, origin, "Memory.CompareAndSet", data, `{"success":true}`)
				journal = append(journal, request(r, 1, origin, "Memory.CompareAndSet", data))
				m[at] = value
			}
			want(r, d, origin, "Memory.Get", `{"key":"proc/meminfo"}`, m.meminfo(origin))
		}
		live := domaintest.Snapshot(r, d)
		replayed := newDomain(r, nil)
		for _, call := range journal {
			domaintest.Apply(replayed, call, call.Data)
		}
		if !bytes.Equal(live, domaintest.Snapshot(r, replayed)) {
			r.Fatal("replaying the commands gives another state")
		}
		restored := newDomain(r, nil)
		if err := restored.Restore(live); len(live) > 0 && err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(live, domaintest.Snapshot(r, restored)) {
			r.Fatal("restoring a snapshot gives another state")
		}
		for _, origin := range []string{home, other, ""} {
			want(r, restored, origin, "Memory.Get", `{"key":"proc/meminfo"}`, m.meminfo(origin))
			want(r, restored, origin, "Memory.List", `{"limit":1000}`, m.keys(origin, ""))
		}
		d.Reset()
		if rest := domaintest.Snapshot(r, d); len(rest) > 0 {
			r.Fatalf("after Reset: %q", rest)
		}
	})
}

// want runs a call and compares its answer, or the text of its error.
func want(r rapid.TB, d *memory.Domain, origin, typ, data, answer string) {
	r.Helper()
	got, err := run(r, d, 1, origin, typ, data)
	if err != nil {
		got = fault.Of(err).Message
	}
	if got != answer {
		r.Fatalf("%s %s: %s, want %s", typ, data, got, answer)
	}
}

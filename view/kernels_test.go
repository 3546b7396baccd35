package view_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// recordOf returns entries with these times, numbered from 1.
func recordOf(times ...int64) []view.Entry {
	entries := make([]view.Entry, len(times))
	for i, at := range times {
		entries[i].AuditEntry = schema.AuditEntry{Seq: int64(i + 1), Time: at}
	}
	return entries
}

// merged merges records, and returns the letter of the record and the number of the entry for each.
func merged(t interface{ Fatal(...any) }, records ...[]view.Entry) string {
	list := make([]view.Record, len(records))
	for i, entries := range records {
		list[i] = view.RecordOf(entries)
	}
	var words []string
	if err := view.Merge(list, func(i int, e *view.Entry) error {
		words = append(words, fmt.Sprintf("%c%d", 'a'+i, e.Seq))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(words, " ")
}

// TestMerge: entries of several records are in the order of their times, those of one record in its order.
func TestMerge(t *testing.T) {
	t.Parallel()
	for want, records := range map[string][][]view.Entry{
		"":                  {nil, nil},
		"b1":                {nil, recordOf(5)},
		"a1 b1 a2 b2":       {recordOf(1, 3), recordOf(2, 4)},
		"a1 a2 b1 b2":       {recordOf(7, 7), recordOf(7, 7)},
		"b1 b2 a1 a2":       {recordOf(3_600_001, 3_600_002), recordOf(1, 2)}, // a clock that is an hour ahead
		"a1 b1 a2 a3 b2 a4": {recordOf(10, 20, 5, 40), recordOf(15, 30)},      // one that was set back
	} {
		if got := merged(t, records...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		records := make([][]view.Entry, rapid.IntRange(1, 4).Draw(t, "records"))
		total := 0
		for i := range records {
			records[i] = recordOf(rapid.SliceOfN(rapid.Int64Range(0, 20), 0, 20).Draw(t, "times")...)
			total += len(records[i])
		}
		next := make([]int64, len(records))
		words := strings.Fields(merged(t, records...))
		for _, word := range words {
			i := word[0] - 'a'
			if next[i]++; word[1:] != fmt.Sprint(next[i]) {
				t.Fatalf("%s is not entry %d of its record", word, next[i])
			}
		}
		if len(words) != total {
			t.Fatalf("%d of %d entries", len(words), total)
		}
	})
	effect := recordOf(30) // called before its consequence at the other kernel, and ended after that
	effect[0].Intent, effect[0].LatencyUS = 1, 15_000
	if got := merged(t, recordOf(20), effect, recordOf(10)); got != "c1 b1 a1" {
		t.Errorf("an effect: %s", got)
	}
	enough := errors.New("enough")
	read := 0
	record := func() (*view.Entry, error) {
		read++
		return &view.Entry{}, nil
	}
	if err := view.Merge([]view.Record{record}, func(int, *view.Entry) error { return enough }); !errors.Is(err, enough) || read != 1 {
		t.Errorf("%v after %d entries", err, read)
	}
}

// TestNarrativeOfKernels: a call that another kernel caused is below its cause, and each sentence has its kernel, whose
// name is escaped.
func TestNarrativeOfKernels(t *testing.T) {
	t.Parallel()
	told := new(view.NarratedCalls)
	alpha := &view.Narrative{Names: view.Names{}, Kernel: "alpha", Calls: told}
	beta := &view.Narrative{Names: view.Names{}, Kernel: "<b>\x1b", Calls: told}
	send, accept := caused(4, "Syscall.SendMsg", "m", ""), caused(9, "Ipc.Accept", "n", "m")
	for _, step := range []struct {
		of    *view.Narrative
		e     *view.Entry
		depth int
	}{{alpha, &send, 0}, {beta, &accept, 1}} {
		list := step.of.Add(step.e)
		if len(list) != 1 || list[0].Depth != step.depth || list[0].Kernel != step.of.Kernel {
			t.Fatalf("%+v", list)
		}
		if page := list[0].HTML(); strings.Contains(page, "<b>\x1b") || !strings.Contains(page, `class="kernel"`) {
			t.Errorf("a page has %q", page)
		}
		if line := list[0].Line(unpainted); strings.ContainsAny(line, "\x1b") {
			t.Errorf("a line is %q", line)
		}
	}
	if page := view.PageMissing("<b>", "<script>\x1b[2J"); strings.Contains(page, "<b>") || strings.Contains(page, "<script") || strings.Contains(page, "\x1b") {
		t.Errorf("a page has %q", page)
	}
}

package kernel_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestStartReadsWhatIsNew checks how many entries a start replays: none after a clean stop, all of them if the projections
// are missing.
func TestStartReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	for n := range 20 {
		c.call("Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":%d}`, n, n), nil)
	}
	replayed := func(change func()) string {
		t.Helper()
		var log bytes.Buffer
		d.log = slog.NewTextHandler(&log, nil)
		d.restartAfter(t, change)
		d.stop() // its output is complete then
		found := regexp.MustCompile(`replayed=(\d+)`).FindStringSubmatch(log.String())
		if found == nil {
			t.Fatalf("the log does not have the number of replayed entries:\n%s", log.String())
		}
		d.begin(t)
		return found[1]
	}
	if n := replayed(func() {}); n != "0" {
		t.Errorf("after an orderly stop %s entries were replayed", n)
	}
	gone := func() {
		dir := filepath.Join(d.cfg.StateDir, "projections")
		if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
			t.Fatalf("projections: %v, %v", files, err)
		}
		testkit.Must(t, os.RemoveAll(dir))
	}
	if n, err := strconv.Atoi(replayed(gone)); err != nil || n < 20 {
		t.Errorf("without projections %d entries were replayed, want 20 at least (%v)", n, err)
	}
	if got := d.dial(t).ask("Memory.Get", `{"key":"k/7"}`); string(got.Data) != "7" {
		t.Errorf("k/7 is %s", got.Data)
	}
}

// TestAuditLogFilters queries entries with each filter, in a journal that the index covers partly, and compares the answer
// with that of reading everything.
func TestAuditLogFilters(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["Memory.Set"]}`)
	for n := range 300 {
		c.call("Memory.Set", fmt.Sprintf(`{"key":"k","value":%d,"pid":%d}`, n, int64(n%2)*pid), nil)
		if n%100 == 0 {
			c.askWith("Syscall.Echo", `{"message":"x"}`, fmt.Sprintf(`,"correlation":"flow-%d"`, n))
		}
	}
	for n, key := range []string{"notes/1", "/notes/1", "notes/2", "notes/1"} {
		c.askWith("Memory.Set", fmt.Sprintf(`{"key":%q,"value":1,"pid":%d}`, key, pid*int64(n%2)), `,"causation":"a \u0022cause\u0022"`)
	}
	c.ask("Memory.Get", fmt.Sprintf(`{"key":"notes/1","pid":%d}`, pid)) // which it was not granted
	c.ask("Memory.Delete", fmt.Sprintf(`{"key":"/notes/1","pid":%d}`, pid))
	elsewhere := c.askWith("Memory.Set", `{"key":"notes/1","value":1}`, `,"origin":"https://elsewhere.test/"`)
	count := func(members string) int {
		t.Helper()
		found, since := 0, 0
		for {
			var page struct {
				Entries []struct{ Seq int } `json:"entries"`
				Next    int                 `json:"next"`
			}
			c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":70%s}`, since, members), &page)
			found += len(page.Entries)
			if since = page.Next; since == 0 {
				return found
			}
		}
	}
	var first, last struct {
		Entries []struct{ Time int64 } `json:"entries"`
	}
	c.call("Audit.Log", `{"type":"Memory.Set","limit":1}`, &first)
	c.call("Audit.Log", `{"correlation":"flow-200"}`, &last)
	if len(first.Entries) != 1 || len(last.Entries) != 1 {
		t.Fatalf("first %v, last %v", first, last)
	}
	asked := map[string]int{
		`,"type":"Memory.Set"`:                                           305,
		`,"type":"Memory.Set","pid":` + fmt.Sprint(pid):                  152,
		`,"type":"Syscall.Echo"`:                                         3,
		`,"correlation":"flow-100"`:                                      1,
		`,"correlation":"nobody"`:                                        0,
		`,"id":"` + elsewhere.Metadata.Causation + `"`:                   1,
		`,"id":"nobody"`:                                                 0,
		`,"caused_by":"a \"cause\""`:                                     4,
		`,"caused_by":"a"`:                                               0,
		`,"key":"/notes/1"`:                                              4, // without the query, and the one in another origin
		`,"key":"notes/1","denied":true`:                                 1,
		`,"key":"notes/1","caused_by":"a \"cause\"","type":"Memory.Set"`: 3,
		`,"denied":true`:                                                 2,
		`,"denied":true,"pid":0`:                                         0,
		`,"denied":false,"key":"notes/2"`:                                1,
		`,"type":"Memory.Set","until_time":1`:                            0,
		`,"type":"Memory.Set","since_time":99999999999999`:               0,
		fmt.Sprintf(`,"type":"Memory.Set","since_time":%d`, first.Entries[0].Time):                                         305,
		fmt.Sprintf(`,"type":"Syscall.Echo","since_time":%d,"until_time":%d`, first.Entries[0].Time, last.Entries[0].Time): 3,
	}
	for round := range 2 { // the second with all of it indexed
		for members, want := range asked {
			if got := count(members); got != want {
				t.Errorf("round %d, %s: %d entries, want %d", round, strings.TrimPrefix(members, ","), got, want)
			}
		}
		for range 256 {
			c.ask("Syscall.Ping", `{"payload":1}`)
		}
	}
}

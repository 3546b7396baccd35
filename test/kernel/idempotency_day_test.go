package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// TestKeyLastsADay starts a kernel with a journal with two commands of yesterday. The key that is 23 hours old still gives
// its first outcome and runs nothing; the one that is 25 hours old is free again.
func TestKeyLastsADay(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) { yesterday(t, cfg.StateDir) })
	c := d.dial(t)
	advance := func(key string) string {
		return string(c.askWith("Clock.Advance", `{"ticks":5}`, fmt.Sprintf(`,"idempotencyKey":%q`, key)).Data)
	}
	if got := advance("young"); got != `{"tick":10}` {
		t.Errorf("within the day: %s, want the first outcome, 10", got)
	}
	if got := advance("old"); got != `{"tick":15}` {
		t.Errorf("after the day: %s, want the 10 of the journal and 5 more", got)
	}
	if got := advance("old"); got != `{"tick":15}` {
		t.Errorf("the key's new outcome: %s", got)
	}
}

// yesterday writes the journal of a kernel whose clock was advanced twice by 5.
func yesterday(t *testing.T, state string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(state, 0o700))
	log, _, err := journal.Open(journal.Options{Dir: filepath.Join(state, "journal")})
	testkit.Must(t, err)
	for i, key := range []string{"old", "young"} {
		at := time.Now().Add(time.Duration(i*2-25) * time.Hour).UnixMilli()
		tick := int64(5 * (i + 1))
		e := journal.Entry{
			Time: at, Tick: tick, Origin: "https://my-os.local/", Conn: "c-1", LatencyUS: 1,
			Request: fmt.Appendf(nil, `{"kind":"command","type":"Clock.Advance","data":{"ticks":5},"metadata":{"id":"a","timestamp":%d,"idempotencyKey":%q}}`, at, key),
			Outcome: fmt.Appendf(nil, `{"kind":"reply","data":{"tick":%d}}`, tick),
		}
		testkit.Must(t, e.Check())
		log.Append(&e)
	}
	testkit.Must(t, log.Flush())
	testkit.Must(t, log.Close())
}

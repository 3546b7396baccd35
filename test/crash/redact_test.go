package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// TestKilledWhileRedacting kills a kernel with SIGKILL while it redacts an entry, when a certain file appears. The next
// start finds the journal valid. If an entry vouches for the line, the value is then in no file and not in the state;
// otherwise both have it. PWOS_LONG=1 does it 200 times.
func TestKilledWhileRedacting(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(6, 6, 200)
	p := newPlace(t)
	own, projections := filepath.Join(p.StateDir(), "journal"), filepath.Join(p.StateDir(), "projections")
	daemon := daemonAt(t, p)
	chance := rand.New(rand.NewPCG(1, 18))
	done, undone, seq := 0, 0, int64(0)
	for round := range rounds {
		running := daemon.Start(t)
		c := testkit.Value(dial(p))(t)
		word := fmt.Sprintf("hush%05dz", round)
		for i := range 5 {
			testkit.Must(t, c.call("command", "Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":%q}`, i, word+fmt.Sprint(i)), new(json.RawMessage)))
		}
		var log schema.AuditLogOutput
		testkit.Must(t, c.call("query", "Audit.Log", fmt.Sprintf(`{"type":"Memory.Set","key":"k/3","since_seq":%d}`, seq), &log))
		seq = log.Entries[len(log.Entries)-1].Seq
		word += "3"
		// The moments of the kill: any moment, the copy, the file of redactions, the renamed copy, the rebuilt index, the
		// answer.
		pattern := []string{own, own + "/*.rewritten", own + "/redactions.tmp", own + "/*.rewritten", projections + "/*", ""}[round%6]
		spins, copied := chance.IntN(40_000), false
		data := fmt.Sprintf(`{"seq":%d,"member":"/request/data/value"}`, seq)
		killAmid(t, running, c, "Audit.Redact", data, pattern, func(before, now []string) bool {
			spins, copied = spins-1, copied || len(now) > 0
			if round%6 == 3 { // the copy has replaced the segment
				return copied && len(now) == 0
			}
			return !slices.Equal(now, before) || round%6 == 0 && spins < 0
		})

		running = daemon.Start(t)
		c = testkit.Value(dial(p))(t)
		report, err := journal.Verify(t.Context(), nil, own, journal.VerifyOptions{})
		testkit.Must(t, err)
		if !report.OK() {
			t.Fatalf("round %d: %+v", round, report)
		}
		var value string
		testkit.Must(t, c.call("query", "Memory.Get", `{"key":"k/3"}`, &value))
		vouched, held := vouches(t, own, uint64(seq)), testkit.FilesWith(t, word, p.StateDir())
		if vouched != (value == "[redacted]") || vouched != (held == nil) || !vouched && value != word {
			t.Fatalf("round %d: vouched for: %v, the state has %q, and the files %q the value", round, vouched, value, held)
		}
		if vouched {
			done++
		} else {
			undone++
			var out schema.AuditRedactOutput
			testkit.Must(t, c.call("command", "Audit.Redact", data, &out))
			if held := testkit.FilesWith(t, word, p.StateDir()); out.By == 0 || held != nil {
				t.Fatalf("round %d: once more: %+v, in %q", round, out, held)
			}
		}
		testkit.Must(t, c.end(nil))
		running.Stop(t)
		if held := testkit.FilesWith(t, word, p.StateDir()); held != nil {
			t.Fatalf("round %d: once the kernel has ended: %q", round, held)
		}
	}
	t.Logf("%d rounds: %d were redacted by the time of the next start, %d were not", rounds, done, undone)
}

// vouches reports whether an entry vouches for the line of another.
func vouches(t *testing.T, dir string, seq uint64) (ok bool) {
	t.Helper()
	r := journal.NewReader(nil, dir, journal.ReaderOptions{From: seq})
	defer func() { testkit.Must(t, r.Close()) }()
	for {
		rec, err := r.Next(t.Context())
		if err != nil {
			return ok
		}
		ok = ok || bytes.Contains(rec.Request, fmt.Appendf(nil, `"type":"Audit.Redacted","data":{"seq":%d,`, seq))
	}
}

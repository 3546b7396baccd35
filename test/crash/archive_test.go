package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// TestKilledWhileArchiving kills a kernel with SIGKILL while it archives its whole journal, when a certain file appears.
// The next one starts, archive and journal are one chain, and every acknowledged value is there, also without snapshots.
// PWOS_LONG=1 does it 200 times.
func TestKilledWhileArchiving(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(6, 6, 200)
	p := newPlace(t)
	archive, own := p.Path("archive"), filepath.Join(p.StateDir(), "journal")
	daemon := daemonAt(t, p)
	chance := rand.New(rand.NewPCG(1, 17))
	set, moved, last := 0, 0, uint64(0)
	for round := range rounds {
		running := daemon.Start(t)
		c := testkit.Value(dial(p))(t)
		for range 20 {
			var out json.RawMessage
			testkit.Must(t, c.call("command", "Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":%d}`, set, set), &out))
			set++
		}
		// The moments of the kill: any moment, a segment in the archive, the state, complete or not, the answer.
		pattern := []string{own, archive + "/*.ndjson.tmp", archive + "/*.ndjson", own + "/*.state.tmp", own + "/*.state", ""}[round%6]
		spins := chance.IntN(20_000)
		data := fmt.Sprintf(`{"directory":%q,"before_seq":9007199254740991}`, archive)
		killAmid(t, running, c, "Audit.Archive", data, pattern, func(before, now []string) bool {
			spins--
			return !slices.Equal(now, before) || round%6 == 0 && spins < 0
		})

		anchor, err := journal.ReadAnchor(nil, own)
		testkit.Must(t, err)
		if anchor != nil && anchor.Seq != last {
			moved++
			last = anchor.Seq
		}
		report, err := journal.Verify(t.Context(), nil, own, journal.VerifyOptions{Archives: there(t, archive)})
		testkit.Must(t, err)
		if !report.OK() || report.Anchor != nil {
			t.Fatalf("round %d: archive and journal are not one chain: %+v", round, report)
		}
	}
	for range 2 {
		running := daemon.Start(t)
		c := testkit.Value(dial(p))(t)
		for i := range set {
			var value json.RawMessage
			testkit.Must(t, c.call("query", "Memory.Get", fmt.Sprintf(`{"key":"k/%d"}`, i), &value))
			if string(value) != fmt.Sprint(i) {
				t.Fatalf("k/%d is %s", i, value)
			}
		}
		testkit.Must(t, c.end(nil))
		running.Stop(t)
		testkit.Must(t, os.RemoveAll(filepath.Join(p.StateDir(), "projections")))
	}
	t.Logf("%d rounds: the anchor moved in %d, %d values", rounds, moved, set)
}

// there returns the archive, if it has a segment.
func there(t *testing.T, archive string) []string {
	t.Helper()
	segments, err := filepath.Glob(archive + "/*.ndjson")
	testkit.Must(t, err)
	if len(segments) == 0 {
		return nil
	}
	return []string{archive}
}

package kernel_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestQueriesAreVouchedFor makes only queries, which need no fsync: the journal is still signed every 1,024 entries
// (PROTOCOL 7).
func TestQueriesAreVouchedFor(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	const queries = 2500
	for range queries {
		c.call("Syscall.Ping", `{"payload":1}`, nil)
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(d.cfg.StateDir, "journal", "checkpoints"))
		testkit.Must(t, err)
		n := bytes.Count(text, []byte("\n"))
		if n >= 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d checkpoints after %d queries", n, queries)
		}
	}
}

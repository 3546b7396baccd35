package kernel_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// entryOnDisk reports whether a reader of the daemon's journal finds the entry.
func (d *running) entryOnDisk(t *testing.T, seq int64) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.cfg.StateDir, "journal", "*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatalf("journal: %v, %d files", err, len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		testkit.Must(t, err)
		if start := fmt.Appendf(nil, `{"seq":%d,`, seq); bytes.HasPrefix(text, start) || bytes.Contains(text, append([]byte("\n"), start...)) {
			return true
		}
	}
	return false
}

// TestOneConnectionInOrder sends calls to several domains in one write. They take effect and are answered in order, and
// after an answer its entry can be read in the journal's files.
func TestOneConnectionInOrder(t *testing.T) {
	t.Parallel()
	const rounds = 20
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dial(t)
			c.spawn(0, `{"allowed_syscalls":["*"]}`)
			form := `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1}}` + "\n"
			if dialect == schema.OsEvent {
				form = `{"type":%q,"name":%q,"payload":%s,"metadata":{"id":%q,"timestamp":1}}` + "\n"
			}
			var frames bytes.Buffer
			var ids, want []string
			say := func(kind, typ, data, answer string) {
				ids, want = append(ids, fmt.Sprint("m-", len(ids))), append(want, answer)
				fmt.Fprintf(&frames, form, kind, typ, data, ids[len(ids)-1])
			}
			for i := range rounds {
				say("command", "Memory.Set", fmt.Sprintf(`{"key":"a","value":%d}`, i), `{"success":true}`)
				say("query", "Memory.Get", `{"key":"a"}`, fmt.Sprint(i))
				say("command", "Syscall.CommitDelta", `{"pid":1}`, fmt.Sprintf(`{"agent_id":"agent","delta_seq":%d}`, i+1))
				say("command", "Syscall.Checkpoint", `{"pid":1}`, fmt.Sprintf(`{"total_deltas":%d,"checkpoint_id":%d}`, i+1, i+1))
				say("command", "Clock.Advance", `{"ticks":1}`, fmt.Sprintf(`{"tick":%d}`, i+1))
				say("query", "Clock.Get", `{}`, fmt.Sprintf(`{"tick":%d}`, i+1))
			}
			c.write(frames.String())
			last := int64(0)
			for i, id := range ids {
				a := c.next()
				if dialect == schema.OsEvent {
					a.Data = a.Payload
				}
				if a.Metadata.Causation != id || string(a.Data) != want[i] {
					t.Fatalf("answer %d: %s to %q, want %s to %q", i, a.Data, a.Metadata.Causation, want[i], id)
				}
				k := a.Metadata.Kernel
				if k == nil || k.Seq <= last || !d.entryOnDisk(t, k.Seq) {
					t.Fatalf("answer %d: proof %+v after entry %d is not in the journal", i, k, last)
				}
				last = k.Seq
			}
		})
	}
}

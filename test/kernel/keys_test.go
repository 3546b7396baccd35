package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestKeyOutlivesAConflict uses a key for another body: that is a conflict, and the key still has its first outcome.
func TestKeyOutlivesAConflict(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	const key = `,"idempotencyKey":"k"`
	first := c.askWith("Syscall.Spawn", `{"child_agent_id":"once"}`, key)
	if f := c.fault(c.askWith("Syscall.Spawn", `{"child_agent_id":"other"}`, key)); f.Code != 409 {
		t.Fatalf("another body: %+v", f)
	}
	if again := c.askWith("Syscall.Spawn", `{"child_agent_id":"once"}`, key); string(again.Data) != string(first.Data) {
		t.Errorf("again: %s, first %s", again.Data, first.Data)
	}
}

// TestKeyOfAFault repeats a command with invalid data, in both dialects, before and after a restart: the answers equal the
// first one, including the member that it names.
func TestKeyOfAFault(t *testing.T) {
	t.Parallel()
	d := start(t)
	first := make(map[schema.Dialect]string)
	for range 2 {
		c := d.dial(t)
		for _, dialect := range dialects() {
			a := c.speak(dialect, "Memory.Set", `{"key":"a//b","value":1}`, `,"idempotencyKey":"k"`)
			if was := first[dialect]; was != "" && was != string(a.Data) {
				t.Errorf("%s: %s, first %s", dialect, a.Data, was)
			}
			first[dialect] = string(a.Data)
		}
		d.restart(t)
	}
}

// TestKeyOfAReceiveThatWasGivenUp disconnects during a waiting receive, and repeats the call with its key, as after a lost
// connection: the first had no outcome, so the second runs.
func TestKeyOfAReceiveThatWasGivenUp(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, messenger)
	data := fmt.Sprintf(`{"pid":%d,"wait_ms":600000}`, pid)
	const key = `,"idempotencyKey":"k"`
	gone := d.dial(t)
	gone.send("Ipc.Receive", data, key)
	testkit.Must(t, gone.conn.Close())
	c.ended(1)
	c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, pid), nil)
	if a := c.askWith("Ipc.Receive", data, key); a.Kind != "reply" || !strings.Contains(string(a.Data), `"payload":1`) {
		t.Errorf("again: %s", a.Data)
	}
}

// TestPlainSecretIsNotKept writes an unsealed value to the vault: it is refused, and is in no file of the kernel.
func TestPlainSecretIsNotKept(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.refused(422, "Memory.Set", `{"key":"vault/k","value":"hunter2-in-plain"}`, "pwenc")
	c.call("Syscall.Echo", `{"message":"sync"}`, nil)
	files, err := filepath.Glob(filepath.Join(d.cfg.StateDir, "journal", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("journal: %v, %d files", err, len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		testkit.Must(t, err)
		if strings.Contains(string(text), "hunter2-in-plain") {
			t.Errorf("%s holds the secret", filepath.Base(name))
		}
	}
}

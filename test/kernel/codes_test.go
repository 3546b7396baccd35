package kernel_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// refusal is a call that fails in a kernel with process 1 and its child 2, whose token is valid until tick 3.
type refusal struct {
	name      string
	typ, data string
	code      float64 // of the OsMessage error
	word      string  // of the OsEvent error
	texts     []string
}

func refusalRows() []refusal {
	const denied, full = "UNAUTHORIZED", "QUOTA_EXCEEDED"
	return []refusal{
		{"no token", "Memory.Get", `{"pid":9,"key":"a"}`, 403, denied, []string{"pid 9 may not call Memory.Get", "no process ever had this pid"}},
		{"not allowed", "Syscall.Alloc", `{"pid":3,"resource_id":"gpu","amount":1}`, 403, denied, []string{"pid 3 may not call Syscall.Alloc"}},
		{"expired", "Syscall.SendMsg", `{"pid":2,"receiver_pid":1,"payload":1}`, 403, denied, []string{"expired after tick 3", "it is tick 5"}},
		{"read-only", "Memory.Set", `{"key":"proc/system/summary","value":1}`, 403, denied, []string{"read-only", "proc/system/summary"}},
		{"read-only, to remove", "Memory.Delete", `{"key":"/proc/cmdline"}`, 403, denied, []string{"read-only", "proc/cmdline"}},
		{"kernel's own", "Process.Exit", `{"pids":[1],"reason":"x"}`, 404, "NOT_FOUND", []string{"Process.Exit"}},
		{"no such key", "Memory.Get", `{"key":"/notes/123"}`, 404, "NOT_FOUND", []string{"Key not found: /notes/123"}},
		{"no such key, to remove", "Memory.Delete", `{"key":"/notes/123"}`, 404, "NOT_FOUND", []string{"Key not found: /notes/123"}},
		{"no such process", "Process.Get", `{"pid":9}`, 404, "NOT_FOUND", []string{"pid 9"}},
		{"no such resource", "Syscall.Query", `{"resource_id":"cake"}`, 404, "NOT_FOUND", []string{"cake"}},
		{"plain text in the vault", "Memory.Set", `{"key":"vault/a/token","value":"plain"}`, 422, "INVALID_INPUT", []string{"pwenc:v1:", "vault/a/token"}},
		{"more than is held", "Syscall.Release", `{"pid":1,"resource_id":"gpu","amount":3}`, 409, "CONFLICT", []string{"gpu", "holds 1.5"}},
		{"ended", "Capability.Grant", `{"pid":4,"allowed_syscalls":["*"]}`, 409, "CONFLICT", []string{"pid 4 has ended"}},
		{"beyond the quota", "Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":3}`, 429, full, []string{"gpu", "may hold 4", "holds 1.5", "asked for 3"}},
		{"mailbox full", "Syscall.SendMsg", `{"receiver_pid":2,"payload":2}`, 429, full, []string{"MAILBOX_FULL", "pid 2", "1 messages"}},
		{"pool exhausted", "Syscall.Alloc", `{"resource_id":"gpu","amount":7}`, 507, "INSUFFICIENT_RESOURCES", []string{"gpu is exhausted", "6.5 are free", "7 were requested"}},
	}
}

// TestCodes makes calls that the kernel refuses, in both dialects: each gets the right code, a message that names its
// subject, and its id as the cause. No state has changed.
func TestCodes(t *testing.T) {
	t.Parallel()
	c := start(t, smallMailboxes).dial(t)
	pids := append(c.world(), c.spawn(0, `{"allowed_syscalls":["Memory.*"]}`), c.spawn(0, `{"allowed_syscalls":["*"]}`))
	c.call("Syscall.Terminate", `{"target_pid":4}`, nil)
	c.call("Clock.Advance", `{"ticks":5}`, nil)
	before := strings.Join(c.everything(pids), "\n")
	for _, row := range refusalRows() {
		for _, dialect := range dialects() {
			want := codes{schema.OsMessage: row.code, schema.OsEvent: row.word}[dialect]
			f := c.failure(c.speak(dialect, row.typ, row.data, ""))
			if f.Code != want {
				t.Errorf("%s as an %s: %v %q, want %v", row.name, dialect, f.Code, f.Message, want)
			}
			for _, text := range row.texts {
				if !strings.Contains(f.Message, text) {
					t.Errorf("%s as an %s: %q lacks %q", row.name, dialect, f.Message, text)
				}
			}
		}
	}
	if after := strings.Join(c.everything(pids), "\n"); after != before {
		t.Errorf("state after refusals:\n%s\nbefore:\n%s", after, before)
	}
}

// TestUnauthorized makes a call before the prologue is answered, and one as a process without the capability: both errors have
// the code UNAUTHORIZED, or 401 and 403.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.spawn(0, `{"allowed_syscalls":["Memory.Get"]}`)
	for _, dialect := range dialects() {
		socket := map[schema.Dialect]string{schema.OsMessage: "kernel.sock", schema.OsEvent: "events.sock"}[dialect]
		want := codes{schema.OsMessage: 401.0, schema.OsEvent: "UNAUTHORIZED"}[dialect]
		stranger := d.reach(t, socket)
		if f := stranger.failure(stranger.speak(dialect, "Syscall.Ping", `{"payload":1}`, "")); f.Code != want {
			t.Errorf("before the prologue, as an %s: %v %q, want %v", dialect, f.Code, f.Message, want)
		}
		want = codes{schema.OsMessage: 403.0, schema.OsEvent: "UNAUTHORIZED"}[dialect]
		if f := c.failure(c.speak(dialect, "Memory.Set", `{"pid":1,"key":"a","value":1}`, "")); f.Code != want {
			t.Errorf("without the capability, as an %s: %v %q, want %v", dialect, f.Code, f.Message, want)
		}
	}
}

// TestStoppedWaiting ends the kernel during a waiting receive: its caller gets an error.
func TestStoppedWaiting(t *testing.T) {
	t.Parallel()
	for dialect, receive := range map[schema.Dialect]string{
		schema.OsMessage: `{"kind":"command","type":"Ipc.Receive","data":{"pid":1,"wait_ms":600000},"metadata":{"id":"r","timestamp":1}}`,
		schema.OsEvent:   `{"type":"command","name":"Ipc.Receive","payload":{"pid":1,"wait_ms":600000},"metadata":{"id":"r","timestamp":1}}`,
	} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dial(t)
			c.spawn(0, messenger)
			// In one write, so that the first answer shows that both were received.
			c.write(`{"type":"query","name":"Syscall.Ping","payload":{"payload":1}}` + "\n" + receive + "\n")
			if a := c.next(); a.Type != "response" {
				t.Fatalf("ping: %+v", a)
			}
			d.stop()
			a := c.next()
			if dialect == schema.OsEvent {
				a.Kind, a.Data = a.Type, a.Payload
			}
			want := codes{schema.OsMessage: 503.0, schema.OsEvent: "UNAVAILABLE"}[dialect]
			if f := c.failure(a); f.Code != want || !strings.Contains(f.Message, "shutting down") || a.Metadata.Causation != "r" {
				t.Errorf("got %+v, want %v", f, want)
			}
		})
	}
}

package kernel_test

import (
	"fmt"
	"testing"
)

// TestIdempotencyKey repeats commands with their keys, before and after a restart: they run once, with the same answer.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":3}}`)
	const key = `,"idempotencyKey":"k-1"`
	data := fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":2}`, pid)
	first := c.askWith("Syscall.Alloc", data, key)
	const failing = `,"idempotencyKey":"k-2"`
	failed := c.askWith("Syscall.Alloc", data, failing)
	if f := c.fault(failed); f.Code != 429 {
		t.Fatalf("beyond the quota: %+v", f)
	}
	for range 2 {
		if again := c.askWith("Syscall.Alloc", data, key); again.Kind != "reply" || string(again.Data) != string(first.Data) {
			t.Errorf("again: %s, first %s", again.Data, first.Data)
		}
		if again := c.askWith("Syscall.Alloc", data, failing); string(again.Data) != string(failed.Data) {
			t.Errorf("again: %s, first %s", again.Data, failed.Data)
		}
		if held := c.holdings(pid).Held["gpu"]; held != 2 {
			t.Errorf("holds %v, want 2", held)
		}
		if f := c.fault(c.askWith("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1}`, pid), key)); f.Code != 409 {
			t.Errorf("another body under the key: %+v", f)
		}
		d.restart(t)
		c = d.dial(t)
	}
}

package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// TestUnreadPushes has a subscriber that does not read: it is pushed only what its socket and a bounded number can have,
// the rest stays in the mailbox until that is full, and others are served. When it reads at last it gets all messages, in
// order.
func TestUnreadPushes(t *testing.T) {
	t.Parallel()
	const room, size = 100, 12_000
	d := start(t, func(cfg *config.Config) { cfg.Ipc.Mailbox = room })
	c, lazy := d.dial(t), d.dial(t)
	pid := c.spawn(0, messenger)
	lazy.call("Ipc.Subscribe", fmt.Sprintf(`{"pid":%d}`, pid), nil)
	sent := 0
	for ; ; sent++ {
		a := c.ask("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":[%d,%q]}`, pid, sent, strings.Repeat("x", size)))
		if a.Kind == "error" {
			break
		}
		if sent > 4*room+2000 {
			t.Fatalf("%d messages were accepted for a peer that does not read", sent)
		}
	}
	if sent < room {
		t.Errorf("only %d messages were accepted", sent)
	}
	for n := range sent {
		a := lazy.event(schema.OsMessage, "Ipc.MessageDelivered")
		if !strings.Contains(string(a.Data), fmt.Sprintf(`"payload":[%d,`, n)) {
			t.Fatalf("message %d is %.200s", n, a.Data)
		}
	}
}

// TestAck: a message that is delivered with ack stays in the mailbox until it is acknowledged, on any connection. One that
// is not acknowledged when its connection ends is delivered again, in its old order and marked, also after a restart.
func TestAck(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) { cfg.Ipc.Mailbox = 6 })
	c := d.dial(t)
	pid := c.spawn(0, messenger)
	own := fmt.Sprintf(`{"pid":%d`, pid)
	for n := range 6 {
		c.mail(pid, n, "")
	}
	var got struct {
		Messages []pushed `json:"messages"`
	}
	take := func(c *client, want ...int) {
		t.Helper()
		c.call("Ipc.Receive", own+`,"max":9,"ack":true}`, &got)
		var payloads []int
		for _, m := range got.Messages {
			payloads = append(payloads, m.Payload)
		}
		if !slices.Equal(payloads, want) {
			t.Fatalf("received %v, want %v", payloads, want)
		}
	}
	acked := func(c *client, ids string, want string) {
		t.Helper()
		if a := c.speak(schema.OsEvent, "Ipc.Ack", own+`,"msg_ids":`+ids+`}`, ""); string(a.Data) != `{"acknowledged":`+want+`}` {
			t.Errorf("acknowledged %s of %s", a.Data, ids)
		}
	}
	reader := d.dial(t)
	reader.call("Ipc.Receive", own+`,"max":1,"ack":true}`, nil) // message 1, payload 0
	take(reader, 1, 2, 3, 4, 5)
	take(reader)
	c.refused(429, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":9}`, pid), "MAILBOX_FULL")
	acked(c, "[2,99,2]", "[2]")
	c.mail(pid, 6, "")
	reader.halfClose()
	reader.over()

	follower := d.dial(t)
	follower.shapes = c.shapes // so that it sends no queries for them
	c.shape("Ipc.Subscribe")
	follower.call("Ipc.Subscribe", own+`,"ack":true}`, nil)
	for _, want := range []int{0, 2, 3, 4, 5, 6} {
		if l, _ := follower.letter(schema.OsMessage); l.Payload != want || l.Redelivered != (want != 6) {
			t.Fatalf("pushed %+v, want %d", l, want)
		}
	}
	acked(follower, "[1,3]", "[1,3]")
	d.restart(t)
	c = d.dial(t)
	acked(c, "[4]", "[4]") // by a connection that had handled it, but could not acknowledge
	take(c, 4, 5, 6)
	for _, m := range got.Messages {
		if !m.Redelivered {
			t.Errorf("%+v is not marked as redelivered", m)
		}
	}
}

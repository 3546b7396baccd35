package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
)

// mail is the answer of Ipc.Receive.
type mail struct {
	Messages []struct {
		ID      int64  `json:"msg_id"`
		Sender  int64  `json:"sender_pid"`
		Payload any    `json:"payload"`
		Intent  string `json:"intent"`
	} `json:"messages"`
}

// payloads returns the payloads of the messages.
func (m *mail) payloads() string {
	all := make([]string, len(m.Messages))
	for i, message := range m.Messages {
		all[i] = fmt.Sprint(message.Payload)
	}
	return strings.Join(all, " ")
}

func (c *client) receive(pid int64, more string) string {
	c.t.Helper()
	var m mail
	c.call("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":100%s}`, pid, more), &m)
	return m.payloads()
}

const messenger = `{"allowed_syscalls":["SYS_SEND_MSG","Ipc.*"]}`

// TestMailOrder sends by priority and intent, and lets messages expire.
func TestMailOrder(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, messenger)
	var sent struct {
		Status string `json:"status"`
	}
	for _, m := range []string{
		`"payload":1`, `"payload":2,"priority":"HIGH"`, `"payload":3,"priority":"URGENT"`, `"payload":4,"priority":"LOW"`,
		`"payload":5,"priority":"URGENT"`, `"payload":6,"intent":"news"`, `"payload":7,"expires_at_tick":2`, `"payload":8,"expires_at_tick":3`,
	} {
		c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,%s}`, pid, m), &sent)
		if sent.Status != "DELIVERED" {
			t.Errorf("%s: %+v", m, sent)
		}
	}
	c.call("Clock.Advance", `{"ticks":3}`, nil)
	if c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":9,"expires_at_tick":2}`, pid), &sent); sent.Status != "EXPIRED" {
		t.Errorf("a message that is sent after its expiry: %+v", sent)
	}
	if got := c.receive(pid, `,"intent":"news"`); got != "6" {
		t.Errorf("by intent: %s", got)
	}
	if got := c.receive(pid, ""); got != "3 5 1 2 4 8" {
		t.Errorf("the rest: %s", got)
	}
	if got := c.receive(pid, ""); got != "" {
		t.Errorf("an empty mailbox: %s", got)
	}
}

// TestMailbox fills a mailbox, broadcasts to it, and has governance deny messages.
func TestMailbox(t *testing.T) {
	t.Parallel()
	gossip := "gossip"
	c := start(t, func(cfg *config.Config) {
		cfg.Ipc.Mailbox, cfg.Ipc.Deny = 2, []config.Deny{{Intent: &gossip}}
	}).dial(t)
	a, b := c.spawn(0, messenger), c.spawn(0, messenger)
	for i := range 2 {
		c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%d}`, a, i), nil)
	}
	c.refused(429, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":2}`, a), "MAILBOX_FULL")
	var sent struct {
		Status string `json:"status"`
	}
	c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":2,"intent":"gossip"}`, b), &sent)
	if sent.Status != "BLOCKED_BY_GOVERNANCE" {
		t.Errorf("governance: %+v", sent)
	}
	var out struct {
		Delivered []int64 `json:"delivered"`
		Full      []int64 `json:"mailbox_full"`
	}
	c.call("Ipc.Broadcast", `{"payload":"all"}`, &out)
	if fmt.Sprint(out) != fmt.Sprintf("{[%d] [%d]}", b, a) {
		t.Errorf("broadcast: %+v", out)
	}
	c.call("Syscall.SendMsg", `{"receiver_pid":0,"payload":"all again"}`, nil)
	if got, want := c.receive(a, "")+"; "+c.receive(b, ""), "0 1; all all again"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

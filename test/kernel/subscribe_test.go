package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// pushed is the data of Ipc.MessageDelivered.
type pushed struct {
	ID          int64  `json:"msg_id"`
	Sender      int64  `json:"sender_pid"`
	Receiver    int64  `json:"receiver_pid"`
	Payload     int    `json:"payload"`
	Redelivered bool   `json:"redelivered"`
	Causation   string `json:"causation"`
}

// event receives the next frame, which must be an event of the type in the dialect, with a new id and a proof, and returns
// it converted to OsMessage.
func (c *client) event(d schema.Dialect, typ string) answer {
	c.t.Helper()
	a := c.next()
	if d == schema.OsEvent && a.Kind == "" {
		a = answer{Kind: a.Type, Type: a.Name, Data: a.Payload, Metadata: a.Metadata}
	}
	if a.Kind != "event" || a.Type != typ || a.Metadata.ID == "" {
		c.t.Fatalf("got %s %s %s, want event %s as an %s", a.Kind, a.Type, a.Data, typ, d)
	}
	return a
}

// letter receives the next pushed message.
func (c *client) letter(d schema.Dialect) (l pushed, a answer) {
	c.t.Helper()
	a = c.event(d, "Ipc.MessageDelivered")
	if err := json.Unmarshal(a.Data, &l); err != nil {
		c.t.Fatalf("%s: %v", a.Data, err)
	}
	return l, a
}

func (c *client) mail(pid int64, payload int, more string) string {
	c.t.Helper()
	return c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%d%s}`, pid, payload, more), nil).Metadata.Causation
}

// over reads to the end of the connection, and returns the frames.
func (c *client) over() (rest []answer) {
	c.t.Helper()
	for {
		line, err := c.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return rest
		}
		var a answer
		if err := errors.Join(err, json.Unmarshal(line, &a)); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		rest = append(rest, a)
	}
}

func (c *client) halfClose() {
	c.t.Helper()
	testkit.Must(c.t, c.conn.(*net.UnixConn).CloseWrite())
}

// TestMessagesPushed has an agent that follows its mailbox: messages in it come first, urgent ones before others, then new
// ones. Each names the sending call as its cause and has its correlation, shows what Ipc.Receive would, and is proved by
// the entry of its delivery. Calls are answered in between. Nothing is left to receive.
func TestMessagesPushed(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			operator := p.connect(0)
			pid := operator.spawn(0, messenger)
			ids := map[int]string{}
			ids[1], ids[2] = operator.mail(pid, 1, ""), operator.mail(pid, 2, `,"priority":"URGENT"`)
			agent := p.connect(pid)
			subscribed := agent.speak(d, "Ipc.Subscribe", `{}`, `,"correlation":"long"`)
			if string(subscribed.Data) != fmt.Sprintf(`{"receiver_pid":%d,"ack":false}`, pid) {
				t.Fatalf("subscribed: %s", subscribed.Data)
			}
			seen := func(want int) answer {
				t.Helper()
				l, a := agent.letter(d)
				if l.Payload != want || l.Receiver != pid || l.Sender != 0 || l.Redelivered || a.Metadata.Causation != ids[want] || l.Causation != ids[want] {
					t.Fatalf("pushed %s %+v, want %d by %s", a.Data, a.Metadata, want, ids[want])
				}
				if k := a.Metadata.Kernel; k == nil || k.Seq < 1 || k.PID != pid {
					t.Fatalf("%d has the proof %+v", want, k)
				}
				operator.shape("Ipc.Receive").check(t, []byte(`{"messages":[`+string(a.Data)+`]}`))
				return a
			}
			seen(2)
			seen(1)
			if a := agent.speak(d, "Syscall.Ping", `{"payload":"between"}`, ""); string(a.Data) != `{"payload":"between"}` {
				t.Errorf("ping: %s", a.Data)
			}
			a := operator.askWith("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":3}`, pid), `,"correlation":"flow"`)
			ids[3] = a.Metadata.Causation
			last := seen(3)
			if last.Metadata.Correlation != "flow" {
				t.Errorf("correlation %q", last.Metadata.Correlation)
			}
			var log struct {
				Entries []struct {
					Type        string `json:"type"`
					PID         int64  `json:"pid"`
					Causation   string `json:"causation"`
					Correlation string `json:"correlation"`

					Payload json.RawMessage `json:"payload"`
				} `json:"entries"`
			}
			operator.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1}`, last.Metadata.Kernel.Seq-1), &log)
			if len(log.Entries) != 1 || log.Entries[0].Type != "Ipc.Deliver" || log.Entries[0].PID != pid ||
				string(log.Entries[0].Payload) != `{"messages":[`+string(last.Data)+`]}` || // as it was pushed
				log.Entries[0].Causation != subscribed.Metadata.Causation || log.Entries[0].Correlation != "long" {
				t.Errorf("the proof of a push is %+v", log)
			}
			if got := operator.receive(pid, ""); got != "" {
				t.Errorf("received what was pushed: %s", got)
			}
		})
	}
}

// TestOneSubscriber: a mailbox is followed on one connection at a time, and the subscription ends with it, also if the peer
// has only ended its side: calls are answered, and the kernel closes. Later messages stay in the mailbox. The operator may
// follow any mailbox, several on one connection.
func TestOneSubscriber(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, first, second := d.dial(t), d.dial(t), d.dial(t)
	one, two := c.spawn(0, messenger), c.spawn(0, messenger)
	follow := func(pid int64) string { return fmt.Sprintf(`{"pid":%d}`, pid) }
	first.call("Ipc.Subscribe", follow(one), nil)
	first.call("Ipc.Subscribe", follow(two), nil)
	for _, c := range []*client{first, second} {
		c.refused(409, "Ipc.Subscribe", follow(one), fmt.Sprintf("mailbox of pid %d is followed on connection c-", one))
	}
	if a := second.askWith("Ipc.Subscribe", follow(one), `,"idempotencyKey":"k"`); a.Kind != "error" || !strings.Contains(string(a.Data), "idempotencyKey") {
		t.Errorf("with a key: %s", a.Data)
	}
	c.mail(two, 2, "")
	if l, _ := first.letter(schema.OsMessage); l.Receiver != two || l.Payload != 2 {
		t.Errorf("pushed %+v", l)
	}
	ping := first.send("Syscall.Ping", `{"payload":1}`, "")
	first.halfClose()
	if rest := first.over(); len(rest) != 1 || rest[0].Metadata.Causation != ping {
		t.Errorf("after its end: %+v", rest)
	}
	c.mail(one, 3, "")
	if a := second.ask("Ipc.Subscribe", follow(one)); a.Kind != "reply" {
		t.Errorf("after the first has ended: %s", a.Data)
	}
	if l, _ := second.letter(schema.OsMessage); l.Payload != 3 {
		t.Errorf("pushed %+v", l)
	}
}

// TestSubscriptionTakenBack: a subscriber that loses its permission is notified, and gets nothing more: a message after the
// revocation stays in the mailbox. The end of the process also ends the subscription.
func TestSubscriptionTakenBack(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			operator := p.connect(0)
			pid := operator.spawn(0, messenger)
			agent, follower := p.connect(pid), p.connect(0)
			id := agent.speak(d, "Ipc.Subscribe", `{}`, "").Metadata.Causation
			operator.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid), nil)
			operator.mail(pid, 1, "")
			a := agent.event(d, "Ipc.Unsubscribed")
			if !strings.Contains(string(a.Data), `"code":403`) || !strings.Contains(string(a.Data), "Ipc.Subscribe") || a.Metadata.Causation != id {
				t.Errorf("the subscription ended with %s, caused by %s", a.Data, a.Metadata.Causation)
			}
			operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Ipc.*"]}`, pid), nil)
			follower.speak(d, "Ipc.Subscribe", fmt.Sprintf(`{"pid":%d}`, pid), "")
			if l, _ := follower.letter(d); l.Payload != 1 {
				t.Errorf("pushed %+v", l)
			}
			operator.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
			follower.event(d, "Ipc.Unsubscribed")
			if a := follower.speak(d, "Syscall.Ping", `{"payload":1}`, ""); a.Kind != "reply" {
				t.Errorf("a call after the end of the subscription: %s", a.Data)
			}
		})
	}
}

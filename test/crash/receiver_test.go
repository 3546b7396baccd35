package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// came records a message.
func (r *receiver) came(m message) {
	if r.seen[m.Payload]++; r.acked[m.Payload] {
		r.fault("message %d came again after it was acknowledged", m.Payload)
	}
	if r.seen[m.Payload] > 1 && !m.Redelivered {
		r.fault("message %d came again and does not say so", m.Payload)
	}
}

// receive makes one Ipc.Receive, with a key that it keeps until that is answered.
func (r *receiver) receive(c *client, _ *rand.Rand) error {
	data := fmt.Sprintf(`{"pid":%d,"max":5,"wait_ms":50}`, r.pid)
	if err := c.write(frame("command", "Ipc.Receive", data, fmt.Sprintf("receive-%d-%d", r.pid, r.calls))); err != nil {
		return err
	}
	a, err := c.next()
	if err != nil {
		return err
	}
	var box struct {
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(a.Data, &box); err != nil || a.Kind != "reply" {
		r.fault("receive: %s", a.Data)
		return errDrained
	}
	r.calls++
	for _, m := range box.Messages {
		if m.Payload == final {
			return errDrained
		}
		r.came(m)
		if m.Payload != int(r.last) {
			r.fault("message %d came when %d was due", m.Payload, r.last)
		}
		r.last++
	}
	return nil
}

// subscribe follows the mailbox on a new connection. The subscription of a broken connection may still exist until the
// kernel notices its end.
func (r *receiver) subscribe(c *client, ack bool) error {
	for limit := time.Now().Add(testkit.Patience); ; wait(time.Millisecond) {
		var out struct{}
		err := c.call("command", "Ipc.Subscribe", fmt.Sprintf(`{"pid":%d,"ack":%t}`, r.pid, ack), &out)
		if err == nil || !strings.Contains(err.Error(), "is followed on connection") || time.Now().After(limit) {
			return err
		}
	}
}

// follow receives pushes, until the connection ends.
func (r *receiver) follow(c *client, _ *rand.Rand) error {
	if err := r.subscribe(c, false); err != nil {
		return err
	}
	for {
		if m, err := r.pushed(c); err != nil {
			return err
		} else if m.Payload == final {
			return errDrained
		}
	}
}

// pushed receives the next push.
func (r *receiver) pushed(c *client) (m message, err error) {
	a, err := c.next()
	if err != nil {
		return m, err
	}
	if a.Kind != "event" || a.Type != "Ipc.MessageDelivered" {
		return m, fmt.Errorf("pushed %s %s %s", a.Kind, a.Type, a.Data)
	}
	if err := json.Unmarshal(a.Data, &m); err != nil {
		return m, err
	}
	if m.Payload != final {
		r.came(m)
	}
	return m, nil
}

// acknowledge receives pushes, acknowledges most of them, and occasionally dies.
func (r *receiver) acknowledge(c *client, chance *rand.Rand) error {
	if err := r.subscribe(c, true); err != nil {
		return err
	}
	asked := make(map[int64]int) // unanswered acknowledgments, by message id
	last := int64(0)
	for {
		a, err := c.next()
		if err != nil {
			return err
		}
		if a.Kind == "reply" {
			var out struct {
				Acknowledged []int64 `json:"acknowledged"`
			}
			if err := json.Unmarshal(a.Data, &out); err != nil {
				return err
			}
			for _, id := range out.Acknowledged {
				r.acked[asked[id]] = true
			}
			continue
		}
		var m message
		if err := json.Unmarshal(a.Data, &m); err != nil || a.Type != "Ipc.MessageDelivered" {
			r.fault("pushed %s %s", a.Type, a.Data)
			return err
		}
		if m.Payload == final {
			return errDrained
		}
		r.came(m)
		if m.ID <= last {
			r.fault("message id %d came after %d", m.ID, last)
		}
		last = m.ID
		if chance.IntN(200) == 0 {
			return errDied
		}
		asked[m.ID] = m.Payload
		if err := c.write(frame("command", "Ipc.Ack", fmt.Sprintf(`{"pid":%d,"msg_ids":[%d]}`, r.pid, m.ID), "")); err != nil {
			return err
		}
	}
}

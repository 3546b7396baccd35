package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
)

// seen is what the kernel has of a writer's commands, except for the messages, which can be read only once.
type seen struct{ value, deltas, held int }

// after returns what is seen after commands 0 to n-1.
func after(n int) seen {
	s := seen{value: -1, deltas: before(n, committing), held: before(n, allocating)}
	if sets := before(n, setting); sets > 0 {
		s.value = (sets - 1) * turns
	}
	return s
}

// look reads what the kernel has.
func (w *writer) look(c *client) (seen, error) {
	s := seen{value: -1}
	if err := c.write(frame("query", "Memory.Get", fmt.Sprintf(`{"pid":%d,"key":"crash/%d"}`, w.pid, w.pid), "")); err != nil {
		return s, err
	}
	a, err := c.next()
	if err != nil {
		return s, err
	}
	if a.Kind == "reply" {
		if err := json.Unmarshal(a.Data, &s.value); err != nil {
			return s, err
		}
	}
	var state struct {
		Memory struct {
			Resources map[string]int `json:"resources"`
		} `json:"memory"`
	}
	var token struct {
		Held map[string]int `json:"held"`
	}
	err = errors.Join(
		c.call("query", "Syscall.GetState", fmt.Sprintf(`{"pid":%d}`, w.pid), &state),
		c.call("query", "Capability.Get", fmt.Sprintf(`{"pid":%d}`, w.pid), &token))
	s.deltas, s.held = state.Memory.Resources["n"], token.Held["gpu"]
	return s, err
}

// check compares what the kernel has with what it has acknowledged: all of that, in order, and nothing that was not sent.
// Then it repeats the commands without an answer, and the last one that had an answer: each must have been done once.
func (w *writer) check() error {
	c, err := dial(w.place)
	if err != nil {
		return err
	}
	defer c.end(nil)
	found, err := w.look(c)
	if err != nil {
		return err
	}
	n := w.acked
	for n < w.sent && after(n) != found {
		n++
	}
	if after(n) != found {
		return fmt.Errorf("pid %d: %+v after %d commands were acknowledged and %d sent, want %+v to %+v",
			w.pid, found, w.acked, w.sent, after(w.acked), after(w.sent))
	}
	for from := max(w.acked-1, 0); from < w.sent; from += window {
		if err := w.batch(c, from, min(from+window, w.sent)); err != nil {
			return err
		}
	}
	if found, err = w.look(c); err != nil {
		return err
	}
	if found != after(w.sent) {
		return fmt.Errorf("pid %d: %+v after all %d commands, want %+v", w.pid, found, w.sent, after(w.sent))
	}
	return w.drain(c)
}

// drain receives the messages in the mailbox: each that was sent, once, in order.
func (w *writer) drain(c *client) error {
	for {
		var box struct {
			Messages []struct {
				ID      int64 `json:"msg_id"`
				Payload int   `json:"payload"`
			} `json:"messages"`
		}
		if err := c.call("command", "Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":1000}`, w.pid), &box); err != nil {
			return err
		}
		if len(box.Messages) == 0 {
			break
		}
		for _, m := range box.Messages {
			want := before(w.drained, sending)*turns + sending
			if n, ok := w.ids[m.ID]; m.Payload != want || !ok || n != want {
				return fmt.Errorf("pid %d: message %d of command %d, want command %d", w.pid, m.ID, m.Payload, want)
			}
			w.drained = want + 1
		}
	}
	if got, want := before(w.drained, sending), before(w.sent, sending); got != want {
		return fmt.Errorf("pid %d: %d messages in all, want %d", w.pid, got, want)
	}
	return nil
}

// number records the id of the message that command n sent, which no other message may have.
func (w *writer) number(n int, a answer) error {
	if n%turns != sending {
		return nil
	}
	var out struct {
		ID int64 `json:"msg_id"`
	}
	if err := json.Unmarshal(a.Data, &out); err != nil {
		return err
	}
	if first, ok := w.ids[out.ID]; ok && first != n {
		return &refusedError{fmt.Sprintf("pid %d: message id %d of command %d and of command %d", w.pid, out.ID, first, n)}
	}
	w.ids[out.ID] = n
	return nil
}

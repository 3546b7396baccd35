package crash_test

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/internal/testkit"
)

// window is how many commands of a writer are in flight.
const window = 8

// writer sends numbered commands as a separate process. Command n is always the same, with the same key.
type writer struct {
	place *testkit.Place
	pid   int64

	sent    int // commands 0 to sent-1 may have been executed
	acked   int // commands 0 to acked-1 were acknowledged
	drained int // messages of earlier commands were received
	last    answer
	ids     map[int64]int // the command of each message id
}

// The four commands are sent in turn.
const (
	setting = iota
	committing
	allocating
	sending
	turns
)

// command returns the n-th command as a line.
func (w *writer) command(n int) string {
	key := fmt.Sprintf("command-%d", n)
	switch n % turns {
	case setting:
		return frame("command", "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"crash/%d","value":%d}`, w.pid, w.pid, n), key)
	case committing:
		return frame("command", "Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"resource_changes":{"n":1}}`, w.pid), key)
	case allocating:
		return frame("command", "Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1}`, w.pid), key)
	default:
		return frame("command", "Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":%d}`, w.pid, w.pid, n), key)
	}
}

// before returns how many of the commands 0 to n-1 have the given turn.
func before(n, turn int) int { return (n + turns - 1 - turn) / turns }

// write sends commands until the connection breaks, which only the kernel's end may cause. The error is that of a command.
func (w *writer) write() error {
	c, err := dial(w.place)
	if err != nil {
		return nil // already killed
	}
	defer c.end(nil)
	for {
		if err := w.batch(c, w.sent, w.sent+window); err != nil {
			return refusal(err)
		}
	}
}

// refusedError is a command's error, as opposed to the connection's.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

func refusal(err error) error {
	if r, ok := err.(*refusedError); ok {
		return r
	}
	return nil
}

// batch sends a range of commands in one write, and handles the answers.
func (w *writer) batch(c *client, from, to int) error {
	var text strings.Builder
	for n := from; n < to; n++ {
		text.WriteString(w.command(n))
	}
	w.sent = max(w.sent, to)
	if err := c.write(text.String()); err != nil {
		return err
	}
	for n := from; n < to; n++ {
		a, err := c.next()
		if err != nil {
			return err
		}
		if err := w.took(n, a); err != nil {
			return err
		}
	}
	return nil
}

// took records the acknowledgment of command n.
func (w *writer) took(n int, a answer) error {
	if a.Kind != "reply" {
		return &refusedError{fmt.Sprintf("pid %d, command %d: %s", w.pid, n, a.Data)}
	}
	if n == w.acked-1 && string(a.Data) != string(w.last.Data) {
		return &refusedError{fmt.Sprintf("pid %d, command %d again: %s, first %s", w.pid, n, a.Data, w.last.Data)}
	}
	if n >= w.acked {
		w.acked, w.last = n+1, a
	}
	return w.number(n, a)
}

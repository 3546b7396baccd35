package agents_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// client is a connection after the prologue: the operator's, or an agent's own.
type client struct {
	out   io.Writer
	lines *bufio.Reader
	close func()
	sent  int
	renew func() // extends the deadline of the connection by Patience
}

// frame is a frame from the kernel.
type frame struct {
	Kind     string          `json:"kind"`
	Type     string          `json:"type"`
	Data     json.RawMessage `json:"data"`
	Metadata struct {
		ID          string `json:"id"`
		Correlation string `json:"correlation"`
		Causation   string `json:"causation"`
		Kernel      struct {
			Seq uint64 `json:"seq"`
			PID int64  `json:"pid"`
		} `json:"kernel"`
	} `json:"metadata"`
}

// kernelError is the data of an error.
type kernelError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *kernelError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// greet completes the prologue.
func greet(in io.Reader, out io.Writer) (*client, error) {
	c := resume(in, out)
	first, err := c.next()
	if err != nil {
		return nil, err
	}
	if first.Type != "Syscall.Authenticate" || string(first.Data) != `{"scheme":"none"}` {
		return nil, fmt.Errorf("the first frame is %+v", first)
	}
	_, err = io.WriteString(out, `{"kind":"reply","type":"Syscall.Authenticate","data":null}`+"\n")
	return c, err
}

// resume returns a client for a connection whose prologue is complete.
func resume(in io.Reader, out io.Writer) *client {
	return &client{out: out, lines: bufio.NewReaderSize(in, 64<<10), close: func() {}, renew: func() {}}
}

func dialSocket(path string) (*client, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	renew := func() { _ = conn.SetDeadline(time.Now().Add(testkit.Patience)) }
	renew()
	c, err := greet(conn, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.close, c.renew = func() { _ = conn.Close() }, renew
	return c, nil
}

func (p *place) dial(t testing.TB) *client {
	t.Helper()
	c, err := dialSocket(p.Socket())
	testkit.Must(t, err)
	t.Cleanup(c.close)
	return c
}

func (c *client) next() (f frame, err error) {
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(line, &f)
}

// send writes a request without waiting for its answer.
func (c *client) send(kind, typ, data string) error {
	c.renew()
	c.sent++
	_, err := fmt.Fprintf(c.out, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"q-%d-%d","timestamp":1}}`+"\n",
		kind, typ, data, os.Getpid(), c.sent)
	return err
}

// sendKeyed writes a command with an idempotency key.
func (c *client) sendKeyed(key, typ, data string) error {
	c.renew()
	_, err := fmt.Fprintf(c.out, `{"kind":"command","type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1,"idempotencyKey":%q}}`+"\n",
		typ, data, "q-"+key, key)
	return err
}

// call makes a request, and returns its reply or its error.
func (c *client) call(kind, typ, data string) (frame, error) {
	if err := c.send(kind, typ, data); err != nil {
		return frame{}, err
	}
	f, err := c.next()
	if err == nil && f.Kind == "error" {
		fault := &kernelError{}
		if err := json.Unmarshal(f.Data, fault); err != nil {
			return f, err
		}
		return f, fault
	}
	return f, err
}

// must makes a call that must succeed, and decodes its data into out.
func (c *client) must(t testing.TB, kind, typ, data string, out any) {
	t.Helper()
	f, err := c.call(kind, typ, data)
	if err != nil {
		t.Fatalf("%s %s: %v", typ, data, err)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(f.Data, out); err != nil {
		t.Fatalf("%s: %s: %v", typ, f.Data, err)
	}
}

// descriptor has the members of a process that the tests use.
type descriptor struct {
	PID          int64    `json:"pid"`
	State        string   `json:"state"`
	Command      []string `json:"command"`
	OSPID        *int     `json:"os_pid"`
	Restarts     *int64   `json:"restarts"`
	Sandbox      *string  `json:"sandbox"`
	BlockedUntil *int64   `json:"blocked_until_tick"`
	Exit         *struct {
		Code   *int64  `json:"code"`
		Signal *int64  `json:"signal"`
		Reason string  `json:"reason"`
		Fault  *string `json:"fault"`
		Why    *string `json:"why"`
	} `json:"exit"`
}

func (d *descriptor) reason() string {
	if d.Exit == nil {
		return ""
	}
	return d.Exit.Reason
}

// spawn makes the kernel host a program of this binary. more has further members of the data, each with its comma.
func (c *client) spawn(t testing.TB, more, program string, args ...string) int64 {
	t.Helper()
	command, err := json.Marshal(append([]string{self(t), program}, args...))
	testkit.Must(t, err)
	var out struct {
		ChildPID int64 `json:"child_pid"`
	}
	c.must(t, "command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"%s-%x","command":%s%s}`, program, rand.Uint64(), command, more), &out)
	return out.ChildPID
}

func (c *client) get(t testing.TB, pid int64) (d descriptor) {
	t.Helper()
	c.must(t, "query", "Process.Get", fmt.Sprintf(`{"pid":%d}`, pid), &d)
	return d
}

// awaitState waits until a process is in a state, and returns its descriptor.
func (c *client) awaitState(t testing.TB, pid int64, state string) (d descriptor) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("pid %d is %s", pid, state), func() bool {
		d = c.get(t, pid)
		return d.State == state
	})
	return d
}

// awaitGone waits until a process and its program have ended.
func (c *client) awaitGone(t testing.TB, pid int64) (d descriptor) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("pid %d and its program have ended", pid), func() bool {
		d = c.get(t, pid)
		return d.State == "TERMINATED" && d.OSPID == nil && d.Exit != nil
	})
	return d
}

// awaitKey waits until an agent has stored a value, and returns it.
func (c *client) awaitKey(t testing.TB, key string) (value string) {
	t.Helper()
	testkit.Eventually(t, "key "+key, func() bool {
		f, err := c.call("query", "Memory.Get", fmt.Sprintf(`{"key":%q}`, key))
		if err != nil {
			return false
		}
		if json.Unmarshal(f.Data, &value) != nil {
			value = string(f.Data)
		}
		return true
	})
	return value
}

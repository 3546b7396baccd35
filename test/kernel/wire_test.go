package kernel_test

import (
	"fmt"
	"iter"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// sockets are the daemon's sockets, with the dialect that each speaks first.
func (d *running) sockets() iter.Seq2[string, schema.Dialect] {
	return func(yield func(string, schema.Dialect) bool) {
		_ = yield("kernel.sock", schema.OsMessage) && yield("events.sock", schema.OsEvent)
	}
}

// wire is a connection after the prologue, whose answers must be valid messages.
type wire struct {
	t     testing.TB
	conn  net.Conn
	lines *schema.LineReader
}

func (d *running) wire(t *testing.T, socket string) *wire {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(d.cfg.RuntimeDir, socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	c := &wire{t: t, conn: conn, lines: schema.NewLineReader(conn, 2*schema.MaxEventLine)}
	if m := c.next(); m.Type != "Syscall.Authenticate" {
		t.Fatalf("the first frame is %s", m.Type)
	}
	c.send(`{"type":"response","name":"Syscall.Authenticate","payload":null}` + "\n")
	return c
}

func (c *wire) send(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next answer, which must be a valid message.
func (c *wire) next() schema.Message {
	c.t.Helper()
	line, err := c.lines.Next()
	if err != nil {
		c.t.Fatalf("read answer: %v", err)
	}
	m, fault := schema.Decode(line, schema.OsMessage)
	if fault != nil {
		c.t.Fatalf("answer %q: %v", line, fault)
	}
	return m
}

func ping(id, payload string) string {
	return fmt.Sprintf(`{"kind":"query","type":"Syscall.Ping","data":{"payload":%s},"metadata":{"id":%q,"timestamp":0}}`+"\n", payload, id)
}

func eventPing(id, payload string) string {
	return fmt.Sprintf(`{"type":"query","name":"Syscall.Ping","payload":{"payload":%s},"metadata":{"id":%q,"timestamp":0}}`+"\n", payload, id)
}

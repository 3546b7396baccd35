// Package wire_test talks to a whole daemon over its sockets, as a client in any language would.
package wire_test

import (
	"fmt"
	"iter"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// running is a daemon in this process.
type running struct{ dir string }

func start(t *testing.T) *running {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	testkernel.Start(t, cfg)
	return &running{dir: cfg.RuntimeDir}
}

// sockets are the daemon's sockets, with the dialect that each speaks first.
func (d *running) sockets() iter.Seq2[string, schema.Dialect] {
	return func(yield func(string, schema.Dialect) bool) {
		_ = yield("kernel.sock", schema.OsMessage) && yield("events.sock", schema.OsEvent)
	}
}

// client is an authenticated connection.
type client struct {
	t     testing.TB
	conn  net.Conn
	lines *schema.LineReader
}

func (d *running) dial(t *testing.T, socket string) *client {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(d.dir, socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	c := &client{t: t, conn: conn, lines: schema.NewLineReader(conn, 2*schema.MaxEventLine)}
	if m := c.next(); m.Type != "Syscall.Authenticate" {
		t.Fatalf("the first frame is %s", m.Type)
	}
	c.send(`{"type":"response","name":"Syscall.Authenticate","payload":null}` + "\n")
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next answer, which must be a valid message.
func (c *client) next() schema.Message {
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

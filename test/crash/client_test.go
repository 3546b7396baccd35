package crash_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// patience ends a test that waits for what never comes; nothing is measured by it.
const patience = time.Minute

// client is a connection past the prologue. Its errors are those of the connection: a call's own are in the answer.
type client struct {
	conn  net.Conn
	lines *bufio.Reader
}

func (p *place) dial() (*client, error) {
	conn, err := net.Dial("unix", p.socket())
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, lines: bufio.NewReader(conn)}
	if _, err := c.next(); err != nil {
		return nil, c.end(err)
	}
	if err := c.write(`{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\n"); err != nil {
		return nil, c.end(err)
	}
	return c, nil
}

func (c *client) end(err error) error {
	_ = c.conn.Close()
	return err
}

func (c *client) write(text string) error {
	_, err := c.conn.Write([]byte(text))
	return err
}

// answer is a frame of the kernel's.
type answer struct {
	Kind string          `json:"kind"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

func (c *client) next() (a answer, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return a, err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(line, &a)
}

// frame is a line of the given kind, with an idempotency key unless that is empty.
func frame(kind, typ, data, key string) string {
	extra := ""
	if key != "" {
		extra = fmt.Sprintf(`,"idempotencyKey":%q`, key)
	}
	return fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"x","timestamp":1%s}}`+"\n", kind, typ, data, extra)
}

// call makes one call, which must succeed, and reads its data into out.
func (c *client) call(kind, typ, data string, out any) error {
	if err := c.write(frame(kind, typ, data, "")); err != nil {
		return err
	}
	a, err := c.next()
	if err != nil {
		return err
	}
	if a.Kind != "reply" {
		return fmt.Errorf("%s %s: %s", typ, data, a.Data)
	}
	return json.Unmarshal(a.Data, out)
}

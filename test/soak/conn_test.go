package soak_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// conn is an authenticated connection. Frames are queued and sent together, and each has an expected answer.
type conn struct {
	net.Conn
	lines *bufio.Reader
	out   []byte
	due   []due
	sent  int // frames, over all
}

// due is the expected answer to a frame: a reply if the code is 0, else an error with that code.
type due struct {
	id   string // "" if the kernel cannot have read one
	code int
}

func (p *place) dial() (*conn, error) {
	c, err := p.knock("kernel.sock")
	if err != nil {
		return nil, err
	}
	if _, err := c.lines.ReadSlice('\n'); err != nil {
		return nil, c.end(err)
	}
	if _, err := c.Write([]byte(`{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\n")); err != nil {
		return nil, c.end(err)
	}
	p.connections.Add(1)
	return c, nil
}

// knock connects, and leaves the prologue to the caller.
func (p *place) knock(socket string) (*conn, error) {
	nc, err := net.Dial("unix", p.Path("r/"+socket))
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, lines: bufio.NewReaderSize(nc, 2*schema.MaxLine)}
	return c, nc.SetDeadline(time.Now().Add(testkit.Patience))
}

func (c *conn) end(err error) error { return errors.Join(err, c.Close()) }

// ask queues a call that must end with the code.
func (c *conn) ask(code int, typ, data string) { c.askWith(code, typ, data, "") }

// askWith does as ask does, with further members of the metadata.
func (c *conn) askWith(code int, typ, data, extra string) {
	kind := "command"
	if row, ok := schema.Lookup(typ); ok && row.Kind == schema.KindQuery {
		kind = "query"
	}
	id := fmt.Sprint("s-", c.sent)
	c.raw(due{id, code}, fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1%s}}`, kind, typ, data, id, extra))
}

// raw queues any line.
func (c *conn) raw(d due, line string) {
	c.out = append(append(c.out, line...), '\n')
	c.due = append(c.due, d)
	c.sent++
}

// push sends the queued frames and does not wait for answers.
func (c *conn) push() error {
	if len(c.out) == 0 {
		return nil // its side may have ended
	}
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// flush sends the queued frames, checks each answer, and returns the data of the last.
func (c *conn) flush() (data []byte, err error) {
	if err := c.push(); err != nil {
		return nil, err
	}
	for _, d := range c.due {
		if data, err = c.take(d); err != nil {
			return nil, err
		}
	}
	c.due = c.due[:0]
	return data, nil
}

// wrongError is an answer that differs from the expected one, as opposed to a broken connection.
type wrongError struct{ text string }

func (e *wrongError) Error() string { return e.text }

func (c *conn) take(d due) ([]byte, error) {
	line, err := c.lines.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	var a struct {
		Kind     string          `json:"kind"`
		Data     json.RawMessage `json:"data"`
		Metadata struct {
			Causation string `json:"causation"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, err
	}
	code := 0
	if a.Kind != "reply" {
		var fault struct {
			Code int `json:"code"`
		}
		if err := json.Unmarshal(a.Data, &fault); err != nil {
			return nil, err
		}
		code = fault.Code
	}
	if code != d.code || a.Metadata.Causation != d.id {
		return nil, &wrongError{fmt.Sprintf("got %.300s, want code %d for %q", line, d.code, d.id)}
	}
	return a.Data, nil
}

// call makes one call that succeeds, and reads its data into out, unless that is nil.
func (c *conn) call(typ, data string, out any) error {
	c.ask(0, typ, data)
	answer, err := c.flush()
	if err != nil {
		return fmt.Errorf("%s %s: %w", typ, data, err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

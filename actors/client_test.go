package actors_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// client is the other end of a link.
type client struct {
	t     tb
	link  *link
	lines *schema.LineReader
	done  chan struct{} // closed when the connection has ended
}

func newClient(t tb, l *link) *client {
	return &client{t: t, link: l, lines: schema.NewLineReader(l.out, 4<<20), done: make(chan struct{})}
}

// send writes frames so that they arrive together.
func (c *client) send(frames ...string) {
	c.t.Helper()
	c.sendRaw(strings.Join(frames, "\n") + "\n")
}

func (c *client) sendRaw(bytes string) {
	c.t.Helper()
	if _, err := c.link.in.write([]byte(bytes), true); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

// endInput ends the input: no more frames are sent.
func (c *client) endInput() { c.link.in.end() }

// next waits for the next answer.
func (c *client) next() answer {
	c.t.Helper()
	line, err := c.lines.Next()
	if err != nil {
		c.t.Fatalf("read answer: %v", err)
	}
	return parse(c.t, line)
}

// take waits for the next n answers.
func (c *client) take(n int) []answer {
	c.t.Helper()
	list := make([]answer, n)
	for i := range list {
		list[i] = c.next()
	}
	return list
}

// rest waits until the connection has ended and returns all remaining answers.
func (c *client) rest() []answer {
	c.t.Helper()
	<-c.done
	c.link.out.end()
	return c.all()
}

// all returns the answers up to the end of the output.
func (c *client) all() []answer {
	c.t.Helper()
	var list []answer
	for {
		line, err := c.lines.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			c.t.Errorf("read answer: %v", err)
			return list
		}
		list = append(list, parse(c.t, line))
	}
}

// pending returns the answers that have arrived.
func (c *client) pending() []answer {
	c.t.Helper()
	var list []answer
	for line := range strings.Lines(string(c.link.out.drain())) {
		list = append(list, parse(c.t, []byte(strings.TrimSuffix(line, "\n"))))
	}
	return list
}

// answer is a frame from the kernel.
type answer struct {
	schema.Message
	Code string // of an error: the number in OsMessage or the word in OsEvent
	Text string // of an error: its message
}

// parse parses an answer as strictly as the kernel parses requests, and checks what every answer must have.
func parse(t tb, line []byte) answer {
	t.Helper()
	m, fault := schema.Decode(append([]byte(nil), line...), schema.OsMessage)
	if fault != nil {
		t.Errorf("answer %s: %v", line, fault)
		return answer{Message: m}
	}
	if m.Meta.ID == "" || m.Meta.Timestamp == 0 {
		t.Errorf("answer %s: no id or time of its own", line)
	}
	a := answer{Message: m}
	switch m.Kind {
	case schema.KindReply, schema.KindEvent:
	case schema.KindError:
		var data struct {
			Code    json.RawMessage `json:"code"`
			Message string          `json:"message"`
		}
		if err := json.Unmarshal(m.Data, &data); err != nil {
			t.Errorf("error data %s: %v", m.Data, err)
		}
		a.Code, a.Text = strings.Trim(string(data.Code), `"`), data.Message
	default:
		t.Errorf("answer %s: a kernel sends replies, errors and events", line)
	}
	return a
}

// String returns what tests compare: each answer with the id of its request.
func (a answer) String() string {
	if a.Kind == schema.KindError {
		return a.Meta.Causation + " " + a.Code
	}
	return a.Meta.Causation + " " + string(a.Data)
}

func show(list []answer) []string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return words
}

// ping returns a query that is answered with its payload, any JSON value.
func ping(id, payload string) string {
	return frame(schema.OsMessage, schema.KindQuery, "Syscall.Ping", `{"payload":`+payload+`}`, id)
}

// echo returns a command that is answered with its message.
func echo(id, message string) string {
	return frame(schema.OsMessage, schema.KindCommand, "Syscall.Echo", string(schema.AppendString([]byte(`{"message":`), message))+"}", id)
}

func frame(d schema.Dialect, k schema.Kind, typ, data, id string) string {
	m := schema.Message{Dialect: d, Kind: k, Type: typ, Data: []byte(data)}
	m.Meta = schema.Metadata{Present: true, ID: id, Timestamp: 1735000000000}
	return strings.TrimSuffix(string(schema.AppendMessage(nil, &m)), "\n")
}

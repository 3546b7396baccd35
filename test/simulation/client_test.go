package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// client is the far end of a link. It knows what it has sent and in which order the answers have to come.
type client struct {
	number  int
	pid     int64
	link    *link
	done    chan struct{}     // closed when Serve has returned
	pending []*request        // sent, not answered, oldest first
	sent    int               // bytes so far
	events  []*schema.Message // that have come, and nobody has looked at
	audits  bool              // it has asked for the audit log
	part    []byte            // of an answer
}

// request is a frame with its fate.
type request struct {
	id       string
	frame    string
	pid      int64  // whose connection it is sent on
	conn     string // the name of that
	end      int    // bytes that the connection has sent with it
	typ      string
	input    any
	command  bool
	key      string // idempotency key
	answered bool
	kind     schema.Kind
	data     string
}

const keysOfMemory = 5

// A mood is what a burst is about.
type mood int

const (
	aboutAnything mood = iota
	aboutMemory
	aboutMail
	moods
)

// compose makes a random frame that fits a mood, or an errand where only names one. Each value that is set is set once, so that a
// value tells who has set it.
func (w *world) compose(c *client, about mood, only int) *request {
	w.requests++
	q := &request{id: fmt.Sprintf("m%d", w.requests), pid: c.pid, conn: c.name()}
	key := fmt.Sprintf(`"key":"k%d"`, w.r.IntN(keysOfMemory))
	value := fmt.Sprintf(`"value":{"by":%q,"pad":%q}`, q.id, strings.Repeat("x", w.r.IntN(1+w.r.IntN(400))))
	var data string
	switch n := w.r.IntN([moods]int{100, 46, 100}[about]); {
	case about == aboutMail:
		q.typ, data = w.draw(c, mail)
	case only < len(errands) && about == aboutAnything:
		q.typ, data = w.run(errands[only], c)
	case n < 16:
		q.typ, data = "Memory.Set", "{"+key+","+value+"}"
	case n < 20:
		q.typ, data = "Memory.Delete", "{"+key+"}"
	case n < 24:
		q.typ, data = "Memory.CompareAndSet", "{"+key+","+value+"}"
	case n < 46:
		q.typ, data = "Memory.Get", "{"+key+"}"
	case n < 54:
		q.typ, data = "Syscall.Ping", `{"payload":`+fmt.Sprint(w.requests)+`}`
	default:
		q.typ, data = w.draw(c, errands)
	}
	row, _ := schema.Lookup(q.typ)
	var invalid error
	if q.input, invalid = decoded(row, data); invalid != nil {
		w.fail(fmt.Errorf("%s %s: %w", q.typ, data, invalid))
	}
	q.command = row.Kind == schema.KindCommand
	m := schema.Message{Dialect: schema.OsMessage, Kind: row.Kind, Type: q.typ, Data: []byte(data)}
	m.Meta = schema.Metadata{Present: true, ID: q.id, Timestamp: 1735000000000}
	if q.command && w.r.IntN(4) == 0 && !strings.HasSuffix(q.typ, "Subscribe") {
		q.key = "key-" + q.id
		m.Meta.IdempotencyKey = q.key
	}
	q.frame = string(schema.AppendMessage(nil, &m))
	w.oracle.sent[q.id] = q
	return q
}

// decoded is data as the row decodes it.
func decoded(row *schema.Syscall, data string) (any, error) {
	input, invalid := row.Input().Decode([]byte(data))
	if invalid != nil {
		return nil, invalid
	}
	return input, nil
}

// again is q as a client of the same process sends it that does not know what became of it: under the same key.
func (w *world) again(c *client, q *request) *request {
	w.requests++
	r := *q
	r.id, r.conn, r.answered = fmt.Sprintf("m%d", w.requests), c.name(), false
	m, _ := schema.Decode([]byte(strings.TrimSpace(q.frame)), schema.OsMessage)
	m.Meta.ID = r.id
	r.frame = string(schema.AppendMessage(nil, &m))
	w.oracle.sent[r.id] = &r
	return &r
}

// send puts frames in flight.
func (c *client) send(list ...*request) {
	for _, q := range list {
		c.sent += len(q.frame)
		q.end = c.sent
		c.pending = append(c.pending, q)
		c.link.flying = append(c.link.flying, q.frame...)
	}
}

// hear takes what the kernel has written since, and returns the requests that are answered with it.
func (c *client) hear() (answered []*request, err error) {
	c.part = append(c.part, c.link.said...)
	c.link.said = nil
	for {
		line, rest, ok := bytes.Cut(c.part, []byte("\n"))
		if !ok {
			return answered, nil
		}
		c.part = rest
		m, fault := schema.Decode(bytes.Clone(line), schema.OsMessage)
		if fault != nil {
			return answered, fmt.Errorf("client %d got %s: %w", c.number, line, fault)
		}
		if m.Kind == schema.KindEvent {
			c.events = append(c.events, &m)
			continue
		}
		if len(c.pending) == 0 || c.pending[0].id != m.Meta.Causation {
			return answered, fmt.Errorf("client %d got an answer to %s, want one to %s", c.number, m.Meta.Causation, c.waits())
		}
		q := c.pending[0]
		c.pending = c.pending[1:]
		q.answered, q.kind, q.data = true, m.Kind, string(m.Data)
		answered = append(answered, q)
	}
}

// name is that of the connection.
func (c *client) name() string { return fmt.Sprintf("c-%d", c.number) }

func (c *client) waits() string {
	if len(c.pending) == 0 {
		return "nothing"
	}
	return c.pending[0].id
}

// code is that of an error.
func (q *request) code() string {
	var data struct {
		Code json.RawMessage `json:"code"`
	}
	_ = json.Unmarshal([]byte(q.data), &data) // what is no error has none
	return strings.Trim(string(data.Code), `"`)
}

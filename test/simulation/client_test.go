package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// client is the client's end of a link. It checks the order of the answers.
type client struct {
	number  int
	pid     int64
	link    *link
	done    chan struct{}     // closed when Serve has returned
	pending []*request        // sent and not answered, oldest first
	sent    int               // number of bytes sent
	events  []*schema.Message // received events that are not checked yet
	audits  bool              // it has subscribed to the audit log
	part    []byte            // the beginning of an incomplete line
}

// request is a frame and its answer.
type request struct {
	id       string
	frame    string
	pid      int64  // the process that it is sent as
	conn     string // name of its connection
	end      int    // number of bytes that the connection has sent, up to the end of this frame
	typ      string
	input    any
	command  bool
	key      string // idempotency key
	answered bool
	kind     schema.Kind
	data     string
	refs     string // refs of the answer: the parts of data that are blobs
}

const keysOfMemory = 5

// A mood selects what the requests of a burst are about.
type mood int

const (
	aboutAnything mood = iota
	aboutMemory
	aboutMail
	moods
)

// compose draws a request that fits a mood, or that of errands[only] if it exists. Each value is set at most once, so that a
// value identifies the request that set it.
func (w *world) compose(c *client, about mood, only int) *request {
	q := w.request(c, "")
	key := fmt.Sprintf(`"key":"k%d"`, w.r.IntN(keysOfMemory))
	value := w.value(c, q.id)
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
	case n < 53:
		q.typ, data = "Syscall.Ping", `{"payload":`+fmt.Sprint(w.requests)+`}`
	case n < 55 && !w.drops("Http.Fetch"):
		q.typ, data = "Http.Fetch", fetchData
	default:
		q.typ, data = w.draw(c, errands)
	}
	w.frame(q, data)
	return q
}

// request returns a request of c with the next id, without a frame.
func (w *world) request(c *client, typ string) *request {
	w.requests++
	return &request{id: fmt.Sprintf("m%d", w.requests), typ: typ, pid: c.pid, conn: c.name()}
}

// frame encodes the frame of q, and draws an idempotency key for some commands.
func (w *world) frame(q *request, data string) {
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
}

// alone makes an idle client send frames, which the kernel receives in a turn of their own.
func (w *world) alone(many int, typ, format string) {
	i := slices.IndexFunc(w.clients, func(c *client) bool { return len(c.pending) == 0 })
	if i < 0 {
		if len(w.clients) > w.scenario.clients+1 {
			return
		}
		w.connect(w.caller())
		i = len(w.clients) - 1
	}
	c := w.clients[i]
	for range many {
		q := w.request(c, typ)
		w.frame(q, fmt.Sprintf(format, w.r.IntN(keysOfMemory), q.id))
		w.note("client %d sends %s %s alone", c.number, q.id, typ)
		c.send(q)
	}
	c.link.arrive(len(c.link.flying))
	w.turn()
}

// ask makes an idle client send queries.
func (w *world) ask(many int) { w.alone(many, "Memory.Get", `{"key":"k%d"%.0s}`) }

// tell makes an idle client set a value.
func (w *world) tell() { w.alone(1, "Memory.Set", `{"key":"k%d","value":{"by":%q}}`) }

// decoded returns data in the input type of the row.
func decoded(row *schema.Syscall, data string) (any, error) {
	input, invalid := row.Input().Decode([]byte(data))
	if invalid != nil {
		return nil, invalid
	}
	return input, nil
}

// again returns a copy of q with a new id and the same key, as a client sends it that does not know q's outcome.
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

// unsure queues the unanswered requests of ended clients to be sent again under the same keys.
func (w *world) unsure(gone ...*client) {
	for _, c := range gone {
		for _, q := range c.pending {
			if q.key != "" {
				w.told = append(w.told, q)
			}
		}
		c.pending = nil
	}
}

// send queues frames on the link.
func (c *client) send(list ...*request) {
	for _, q := range list {
		c.sent += len(q.frame)
		q.end = c.sent
		c.pending = append(c.pending, q)
		c.link.flying = append(c.link.flying, q.frame...)
	}
}

// hear decodes what the kernel has written, and returns the requests that were answered.
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
		q.answered, q.kind, q.data, q.refs = true, m.Kind, string(m.Data), m.Meta.Refs
		answered = append(answered, q)
	}
}

// name returns the name of the connection.
func (c *client) name() string { return fmt.Sprintf("c-%d", c.number) }

func (c *client) waits() string {
	if len(c.pending) == 0 {
		return "nothing"
	}
	return c.pending[0].id
}

// code returns the code of an error answer.
func (q *request) code() string {
	var data struct {
		Code json.RawMessage `json:"code"`
	}
	_ = json.Unmarshal([]byte(q.data), &data) // data without a code gives ""
	return strings.Trim(string(data.Code), `"`)
}

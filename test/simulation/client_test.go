package simulation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// client is the far end of a link. It knows what it has sent and in which order the answers have to come.
type client struct {
	number  int
	pid     int64
	link    *link
	done    chan struct{} // closed when Serve has returned
	pending []*request    // sent, not answered, oldest first
	part    []byte        // of an answer
}

// request is a frame with its fate.
type request struct {
	id       string
	frame    string
	typ      string
	command  bool
	key      string // idempotency key
	answered bool
	kind     schema.Kind
	data     string
	refs     string // of what of data is elsewhere
}

const keysOfMemory = 5

// compose makes a random frame. Each value that is set is set once, so that a value tells who has set it.
func (w *world) compose(c *client) *request {
	q := w.request("")
	key := fmt.Sprintf(`"key":"k%d"`, w.r.IntN(keysOfMemory))
	value := w.value(c, q.id)
	var data string
	switch n := w.r.IntN(100); {
	case n < 40:
		q.typ, data = "Memory.Set", "{"+key+","+value+"}"
	case n < 48:
		q.typ, data = "Memory.Delete", "{"+key+"}"
	case n < 54:
		q.typ, data = "Memory.CompareAndSet", "{"+key+","+value+"}"
	case n < 80:
		q.typ, data, q.command = "Memory.Get", "{"+key+"}", false
	case n < 82:
		q.typ, data = "Http.Fetch", `{"url":"https://far.local/"}`
	case n < 90:
		q.typ, data, q.command = "Syscall.Ping", `{"payload":`+fmt.Sprint(w.requests)+`}`, false
	case n < 93:
		q.typ, data = "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":%q,"capabilities":{"allowed_syscalls":["Memory.*","Ipc.*"]}}`, q.id)
	case n < 95:
		q.typ, data = "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, 1+w.r.IntN(6))
	case n < 97:
		q.typ, data = "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, 1+w.r.IntN(6))
	case n < 98:
		q.typ, data = "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Get"]}`, 1+w.r.IntN(6))
	default:
		q.typ, data = "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%q}`, 1+w.r.IntN(6), q.id)
	}
	q.frame = w.frame(q, data)
	return q
}

// request is a command with the next id.
func (w *world) request(typ string) *request {
	w.requests++
	return &request{id: fmt.Sprintf("m%d", w.requests), typ: typ, command: true}
}

// frame is the line of q. A command may get a key.
func (w *world) frame(q *request, data string) string {
	m := schema.Message{Dialect: schema.OsMessage, Kind: schema.KindQuery, Type: q.typ, Data: []byte(data)}
	if q.command {
		m.Kind = schema.KindCommand
	}
	m.Meta = schema.Metadata{Present: true, ID: q.id, Timestamp: 1735000000000}
	if q.command && w.r.IntN(4) == 0 {
		q.key = "key-" + q.id
		m.Meta.IdempotencyKey = q.key
	}
	return string(schema.AppendMessage(nil, &m))
}

// alone has a client that waits for nothing send frames, which the kernel gets in a turn of their own.
func (w *world) alone(many int, typ, format string) {
	i := slices.IndexFunc(w.clients, func(c *client) bool { return len(c.pending) == 0 })
	if i < 0 {
		if len(w.clients) > w.most+1 {
			return
		}
		w.connect()
		i = len(w.clients) - 1
	}
	c := w.clients[i]
	for range many {
		q := w.request(typ)
		q.command = strings.Contains(format, "value")
		q.frame = w.frame(q, fmt.Sprintf(format, w.r.IntN(keysOfMemory), q.id))
		w.note("client %d sends %s %s alone", c.number, q.id, typ)
		c.send(q)
	}
	c.link.arrive(len(c.link.flying))
	w.turn()
}

// ask has somebody ask questions.
func (w *world) ask(many int) { w.alone(many, "Memory.Get", `{"key":"k%d"%.0s}`) }

// tell has somebody set a value.
func (w *world) tell() { w.alone(1, "Memory.Set", `{"key":"k%d","value":{"by":%q}}`) }

// again is q as a client sends it that does not know what became of it: under the same key.
func (w *world) again(q *request) *request {
	w.requests++
	r := *q
	r.id, r.answered = fmt.Sprintf("m%d", w.requests), false
	m, _ := schema.Decode([]byte(strings.TrimSpace(q.frame)), schema.OsMessage)
	m.Meta.ID = r.id
	r.frame = string(schema.AppendMessage(nil, &m))
	return &r
}

// unsure has what clients were not told of asked for again, under the same keys.
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

// send puts frames in flight.
func (c *client) send(list ...*request) {
	for _, q := range list {
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
		if len(c.pending) == 0 || c.pending[0].id != m.Meta.Causation {
			return answered, fmt.Errorf("client %d got an answer to %s, want one to %s", c.number, m.Meta.Causation, c.waits())
		}
		q := c.pending[0]
		c.pending = c.pending[1:]
		q.answered, q.kind, q.data, q.refs = true, m.Kind, string(m.Data), m.Meta.Refs
		answered = append(answered, q)
	}
}

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

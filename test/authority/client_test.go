package authority_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// client is the client's end of a connection. Only one goroutine uses it.
type client struct {
	link   *link
	served chan struct{} // closed once the kernel has released the connection
	frame  func([]byte) []byte
	last   int64
	rest   []byte // answers that arrived together with an earlier one
}

// request is a call to be sent.
type request struct {
	typ, data string
	key       string // idempotency key; "": none
}

func (r request) String() string {
	if r.key == "" {
		return r.typ + " " + r.data
	}
	return r.typ + " " + r.data + " key " + r.key
}

// answer is an answer of the kernel.
type answer struct {
	code int    // code of an error; 0: success
	data []byte // data of a reply
	text string // message of an error
	id   string // id of the request
}

func (a answer) String() string {
	if a.code != 0 {
		return strconv.Itoa(a.code) + " " + a.text
	}
	return string(a.data)
}

var errHungUp = errors.New("kernel closed the connection")

// ask makes a call and waits for its answer. It returns an error only for a failure of the connection.
func (c *client) ask(r request) (answer, error) {
	list, err := c.burst(r)
	if err != nil {
		return answer{}, err
	}
	return list[0], nil
}

// burst sends calls together, and waits for all answers.
func (c *client) burst(list ...request) ([]answer, error) {
	var frames []byte
	for _, r := range list {
		row, ok := schema.Lookup(r.typ)
		if !ok {
			return nil, fmt.Errorf("%s is no syscall", r.typ)
		}
		c.last++
		m := schema.Message{Kind: row.Kind, Type: r.typ, Data: []byte(r.data)}
		m.Meta = schema.Metadata{Present: true, ID: strconv.FormatInt(c.last, 10), Timestamp: 1, IdempotencyKey: r.key}
		frames = schema.AppendMessage(frames, &m)
	}
	if c.frame != nil {
		frames = c.frame(frames)
	}
	c.link.send(frames)
	answers := make([]answer, len(list))
	for i := range list {
		var err error
		if answers[i], err = c.next(); err != nil {
			return nil, err
		}
		if want := strconv.FormatInt(c.last-int64(len(list)-1-i), 10); answers[i].id != want {
			return nil, fmt.Errorf("%s: %s answers request %s, not %s", list[i], answers[i], answers[i].id, want)
		}
	}
	return answers, nil
}

// next waits for the next answer.
func (c *client) next() (answer, error) {
	for !bytes.Contains(c.rest, []byte("\n")) {
		select {
		case more := <-c.link.out:
			c.rest = append(c.rest, more...)
		case <-c.served:
			return answer{}, errHungUp
		}
	}
	line, rest, _ := bytes.Cut(c.rest, []byte("\n"))
	c.rest = rest
	m, fault := schema.Decode(line, schema.OsMessage)
	if fault != nil {
		return answer{}, fmt.Errorf("answer %s: %w", line, fault)
	}
	a := answer{id: m.Meta.Causation, data: m.Data}
	if m.Kind == schema.KindError {
		shown, fault := schema.DecodeErrorData(m.Data)
		if fault != nil {
			return answer{}, fmt.Errorf("answer %s: %w", line, fault)
		}
		a.code, a.text, a.data = shown.Code(), shown.Message, nil
	}
	return a, nil
}

package http_test

import (
	"encoding/json"
	"fmt"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// raw is a connection on which frames are not interpreted.
type raw struct {
	*testkit.Conn
	p    *place
	meta object // of the last answer
}

func (p *place) raw() *raw {
	p.t.Helper()
	r := &raw{Conn: testkit.Value(testkit.Dial(p.Socket()))(p.t), p: p}
	p.t.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *raw) send(line string) {
	r.p.t.Helper()
	_, err := r.Conn.Write([]byte(line + "\n"))
	testkit.Must(r.p.t, err)
}

// write sends a call without waiting for its answer.
func (r *raw) write(typ string, data any) {
	r.p.t.Helper()
	row, _ := schema.Lookup(typ)
	text, err := json.Marshal(data)
	testkit.Must(r.p.t, err)
	r.send(fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"x","timestamp":1}}`, row.Kind, typ, text))
}

// read returns the data of the next answer, whose line must be within the limit.
func (r *raw) read() object {
	r.p.t.Helper()
	line, err := r.Line()
	testkit.Must(r.p.t, err)
	if len(line) > schema.MaxLine+1 {
		r.p.t.Errorf("a line of %d bytes", len(line))
	}
	var frame struct {
		Data     any
		Payload  any // of the older dialect
		Metadata object
	}
	testkit.Must(r.p.t, json.Unmarshal(line, &frame))
	if frame.Payload != nil {
		frame.Data = frame.Payload
	}
	r.meta = frame.Metadata
	data, ok := frame.Data.(object)
	if !ok {
		return object{"": frame.Data}
	}
	return data
}

func (r *raw) call(typ string, data any) object {
	r.p.t.Helper()
	r.write(typ, data)
	return r.read()
}

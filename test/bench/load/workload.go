package load

import (
	"bytes"
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// Workload is one kind of load.
type Workload struct {
	Name        string // the argument of --only
	Description string
	Connections int // connections at once
	Outstanding int // messages outstanding on one connection
	frame       frame
	before      frame // sent to the kernel once, before the load: data that it reads
}

// Workloads returns all workloads.
func Workloads() []Workload {
	ping := newFrame(`{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"`,
		`","timestamp":1735000000000}}`)
	set := newFrame(`{"kind":"command","type":"Memory.Set","data":{"key":"bench/key","value":"xxx"},"metadata":{"id":"`,
		`","timestamp":1735000000000}}`)
	get := newFrame(`{"kind":"query","type":"Memory.Get","data":{"key":"bench/key"},"metadata":{"id":"`,
		`","timestamp":1735000000000}}`)
	return []Workload{
		{Name: "ping-1", Description: "Syscall.Ping, 1 connection, one at a time", Connections: 1, Outstanding: 1, frame: ping},
		{Name: "ping-16", Description: "Syscall.Ping, 16 connections, one at a time each", Connections: 16, Outstanding: 1, frame: ping},
		{Name: "ping-x64", Description: "Syscall.Ping, 1 connection, 64 outstanding", Connections: 1, Outstanding: 64, frame: ping},
		{Name: "set-1", Description: "Memory.Set, durable, 1 connection, one at a time", Connections: 1, Outstanding: 1, frame: set},
		{Name: "set-16", Description: "Memory.Set, durable, 16 connections, one at a time each", Connections: 16, Outstanding: 1, frame: set},
		{Name: "set-64", Description: "Memory.Set, durable, 64 connections, one at a time each", Connections: 64, Outstanding: 1, frame: set},
		{Name: "set-x64", Description: "Memory.Set, durable, 1 connection, 64 outstanding", Connections: 1, Outstanding: 64, frame: set},
		{Name: "get-16", Description: "Memory.Get, 16 connections, one at a time each", Connections: 16, Outstanding: 1, frame: get, before: set},
	}
}

// Find returns the workload of that name.
func Find(name string) (Workload, bool) {
	for _, w := range Workloads() {
		if w.Name == name {
			return w, true
		}
	}
	return Workload{}, false
}

// frame is a message with a slot for its number, which is its id.
type frame struct {
	line []byte
	id   int // offset of the number
}

// digits is the width of the number in an id. It wraps on a connection with more messages.
const digits = 8

func newFrame(before, after string) frame {
	return frame{line: fmt.Appendf(nil, "%s%0*d%s\n", before, digits, 0, after), id: len(before)}
}

// append appends message n.
func (f frame) append(dst []byte, n uint64) []byte {
	at := len(dst) + f.id
	dst = append(dst, f.line...)
	putNumber(dst[at:], n)
	return dst
}

func putNumber(dst []byte, n uint64) {
	for i := digits - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// A check reports whether line, with its '
// ', answers message n. Each connection has its own; it is not safe for concurrent use.
//
// Answers are decoded strictly, as by a real client. A lean check does that for the first answer of a connection, and for
// others compares only the bytes that identify them, because the client shares the processors with the servers, and its own
// work would distort both rates.
type check func(line []byte, n uint64) bool

// echoed returns the check for the echo: the message itself.
func echoed(lean bool) check {
	query, command := []byte(`{"kind":"query",`), []byte(`{"kind":"command",`)
	id := marks(`"metadata":{"id":"`)
	return func(line []byte, n uint64) bool {
		return (bytes.HasPrefix(line, query) || bytes.HasPrefix(line, command)) && bytes.Contains(line, id(n)) &&
			(lean && n > 0 || whole(line, n, func(m *schema.Message) string { return m.Meta.ID }))
	}
}

// replied returns the check for the kernel: a reply that is caused by that message.
func replied(lean bool) check {
	reply := []byte(`{"kind":"reply",`)
	cause := marks(`,"causation":"`)
	return func(line []byte, n uint64) bool {
		return bytes.HasPrefix(line, reply) && bytes.Contains(line, cause(n)) &&
			(lean && n > 0 || whole(line, n, func(m *schema.Message) string { return m.Meta.Causation }))
	}
}

// whole reports whether line is a valid frame that refers to message n.
func whole(line []byte, n uint64, refersTo func(*schema.Message) string) bool {
	m, failure := schema.Decode(line, schema.OsMessage)
	var want [digits]byte
	putNumber(want[:], n)
	return failure == nil && refersTo(&m) == string(want[:])
}

// marks returns a function that returns the text of a member whose value is the number of a message, valid until its next
// call. No value of a workload contains such a text.
func marks(before string) func(n uint64) []byte {
	f := frame{line: fmt.Appendf(nil, `%s%0*d"`, before, digits, 0), id: len(before)}
	var mark []byte
	return func(n uint64) []byte {
		mark = f.append(mark[:0], n)
		return mark
	}
}

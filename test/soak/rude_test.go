package soak_test

import (
	"fmt"
	"net"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// err makes calls that the kernel refuses.
func (a *agent) err(c *conn) error {
	c.ask(404, "Nobody.Knows", `{}`)
	c.ask(422, "Memory.Set", `{"key":"a"}`)
	c.ask(422, "Memory.Get", `{"key":"../a"}`)
	c.ask(422, "Memory.Set", `{"key":"vault/a","value":"plain"}`)
	c.ask(403, "Memory.Set", `{"key":"proc/a","value":1}`)
	c.ask(403, "Syscall.Query", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu"}`, a.pid))
	c.ask(403, "Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"x"}`, a.pid))
	c.ask(404, "Process.Get", `{"pid":999999999}`)
	return flushed(c)
}

// stumble sends lines that are not messages, and one that is too long.
func (a *agent) stumble(c *conn) error {
	c.raw(due{"", 400}, `{"kind":`)
	c.raw(due{"", 400}, `{"kind":"query","kind":"query"}`)
	c.raw(due{"", 400}, "{\"kind\":\"\xff\"}")
	c.raw(due{"", 422}, `{"kind":"query","type":7,"data":null}`)
	c.raw(due{"r", 422}, `{"kind":"reply","type":"Syscall.Ping","data":null,"metadata":{"id":"r","timestamp":1}}`)
	c.raw(due{"", 413}, strings.Repeat("x", schema.MaxLine+1+a.chance.IntN(schema.MaxLine)))
	c.ask(0, "Syscall.Ping", `{"payload":null}`)
	return flushed(c)
}

// visit opens connections that send little or nothing.
func (a *agent) visit(*conn) error {
	switch a.chance.IntN(4) {
	case 0: // not even the prologue
		c, err := a.place.knock([]string{"kernel.sock", "events.sock"}[a.chance.IntN(2)])
		if err != nil {
			return err
		}
		return c.end(nil)
	case 1: // the other dialect
		c, err := a.place.knock("events.sock")
		if err != nil {
			return err
		}
		a.place.connections.Add(1)
		return c.end(event(c))
	case 2: // ends its side first
		return a.other(func(c *conn) error {
			c.ask(0, "Syscall.Ping", `{"payload":1}`)
			if err := c.push(); err != nil {
				return err
			}
			if err := c.Conn.(*net.UnixConn).CloseWrite(); err != nil {
				return err
			}
			return flushed(c)
		})
	default:
		return a.other(a.talk)
	}
}

// event makes one call in the legacy dialect.
func event(c *conn) error {
	_, err := c.Write([]byte(`{"type":"response","name":"Syscall.Authenticate","payload":null}` + "\n" +
		`{"type":"query","name":"Syscall.Ping","payload":{"payload":1}}` + "\n"))
	for range 2 { // the prologue's first frame, and the answer
		if err == nil {
			_, err = c.lines.ReadSlice('\n')
		}
	}
	return err
}

// leave disconnects before it has its answers: that of a waiting call, or of many calls.
func (a *agent) leave(*conn) error {
	return a.other(func(c *conn) error {
		if a.chance.IntN(2) == 0 {
			c.ask(0, "Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":600000,"intent":"never"}`, a.deaf))
			return c.push()
		}
		for range 20 {
			c.ask(0, "Syscall.Ping", fmt.Sprintf(`{"payload":%q}`, strings.Repeat("p", 1000)))
		}
		return c.push()
	})
}

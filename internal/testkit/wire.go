package testkit

import (
	"bufio"
	"io"
	"net"
	"time"
)

// Authenticated is a client's answer to the prologue of a kernel in open mode.
const Authenticated = `{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\n"

// Conn is a connection past the prologue, for lines that a real client would not send.
type Conn struct {
	net.Conn
	lines *bufio.Reader
}

// Dial connects to a kernel's socket and completes the prologue.
func Dial(socket string) (*Conn, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn, bufio.NewReaderSize(conn, 64<<10)}
	if _, err = c.Line(); err == nil {
		_, err = io.WriteString(c, Authenticated)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Line returns the next line, with its newline, which must come within Patience. It extends the write deadline too.
func (c *Conn) Line() ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	return c.lines.ReadBytes('\n')
}

package testkit

import (
	"bufio"
	"io"
	"net"
	"time"
)

// Authenticated is a client's answer to the prologue of a kernel in open mode.
const Authenticated = `{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\n"

// Conn is a connection after the prologue, for lines that a real client would not send.
type Conn struct {
	net.Conn
	lines    *bufio.Reader
	patience time.Duration
}

// Dial connects to a kernel's socket and completes the prologue.
func Dial(socket string) (*Conn, error) { return DialWithin(socket, Patience) }

// DialWithin is Dial for a connection on which each line must arrive within patience.
func DialWithin(socket string, patience time.Duration) (*Conn, error) {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn, bufio.NewReaderSize(conn, 64<<10), patience}
	if _, err = c.Line(); err == nil {
		_, err = io.WriteString(c, Authenticated)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Line returns the next line, with its newline, which must arrive within the connection's patience. It also extends the
// write deadline.
func (c *Conn) Line() ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(c.patience)); err != nil {
		return nil, err
	}
	return c.lines.ReadBytes('\n')
}

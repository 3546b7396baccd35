package client

import (
	"context"
	"net"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// maxAnswer bounds a line from the kernel, in bytes. The kernel obeys the limit of its configuration, which a client
// does not know; this bound only stops a broken peer.
const maxAnswer = 256 << 20

// conn has the lines of a stream to a kernel.
type conn struct {
	net.Conn
	*schema.LineReader
	pid     int            // of the process at the other end; 0: it is not known
	channel access.Channel // that a login is bound to; nil: there is no prologue
}

func newConn(stream net.Conn, pid int, channel access.Channel) *conn {
	return &conn{Conn: stream, LineReader: schema.NewLineReader(stream, maxAnswer), pid: pid, channel: channel}
}

// Dialect implements access.Lines.
func (c *conn) Dialect() schema.Dialect { return schema.OsMessage }

// LineLimit implements access.Lines.
func (c *conn) LineLimit() int { return maxAnswer }

// CloseWrite ends the output, if the stream can do that alone.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// route is a way to a kernel.
type route interface {
	// String returns the text that errors name the kernel by.
	String() string
	// name returns the kernel's name in known_kernels.
	name() (string, error)
	// dial connects. An error for which absent is true means that no kernel runs there.
	dial(ctx context.Context) (*conn, error)
}

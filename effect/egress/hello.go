package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// maxHello bounds a ClientHello with the records around it.
const maxHello = 32 << 10

// recordHandshake is the first byte of TLS.
const recordHandshake = 0x16

// errNoHello says that what came is no TLS, or too much of it.
var errNoHello = errors.New("does not begin with a TLS ClientHello")

// peekHello reads a ClientHello from r. It returns the name that it asks for, in lower case, "" where it asks for none, and all
// that was read, which the host is to be sent.
func peekHello(r io.Reader) (name string, read []byte, err error) {
	var buf bytes.Buffer
	found := false
	stop := errors.New("seen")
	from := &oneSided{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}
	// The library's own parser decides what is asked for, with its checks: one name, no extension twice.
	failed := tls.Server(from, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, found = strings.ToLower(hello.ServerName), true
		return nil, stop
	}}).HandshakeContext(context.Background())
	switch {
	case found:
		return name, buf.Bytes(), nil
	case from.err != nil && !errors.Is(from.err, io.EOF):
		return "", buf.Bytes(), from.err
	case errors.Is(failed, stop):
		return "", buf.Bytes(), nil
	}
	return "", buf.Bytes(), errNoHello
}

// oneSided is a connection that is only read.
type oneSided struct {
	r   io.Reader
	err error
}

func (c *oneSided) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (*oneSided) Write(p []byte) (int, error)      { return len(p), nil } // an alert, which nobody is to see
func (*oneSided) Close() error                     { return nil }
func (*oneSided) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*oneSided) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*oneSided) SetDeadline(time.Time) error      { return nil }
func (*oneSided) SetReadDeadline(time.Time) error  { return nil }
func (*oneSided) SetWriteDeadline(time.Time) error { return nil }

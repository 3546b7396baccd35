package client

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// pump is the way of a stream's input to the kernel. It changes nothing, and counts as it goes how many answers the
// kernel owes at least, so that a lost one is noticed.
type pump struct {
	conn *unixsock.Conn
	in   io.Reader

	buf      []byte // read, not sent: the beginning of a line
	inside   bool   // what was sent ended inside a line
	owed     int
	ended    bool  // all of in was sent
	readErr  error // of in, its end aside
	writeErr error // of the connection: the kernel has closed, as drain finds out too
}

// pumpSize is how much of a line is held back until it is whole, in bytes.
const pumpSize = 64 << 10

// run sends all of in and half-closes. It ends early where the connection does.
func (p *pump) run() {
	p.buf = make([]byte, 0, pumpSize)
	for p.readErr == nil && p.writeErr == nil {
		n, err := p.in.Read(p.buf[len(p.buf):cap(p.buf)])
		p.buf = p.buf[:len(p.buf)+n]
		p.forward(err != nil)
		p.readErr = err
	}
	p.ended = p.writeErr == nil && errors.Is(p.readErr, io.EOF)
	if errors.Is(p.readErr, io.EOF) || errors.Is(p.readErr, os.ErrDeadlineExceeded) { // the latter: we were interrupted
		p.readErr = nil
	}
	_ = p.conn.CloseWrite() // fails where the kernel has closed, which drain finds out
}

// forward sends the whole lines of buf; all of it at the end of input, or where it is full.
func (p *pump) forward(end bool) {
	whole := bytes.LastIndexByte(p.buf, '\n') + 1
	if end || whole == 0 && len(p.buf) == cap(p.buf) {
		whole = len(p.buf)
	}
	if whole == 0 {
		return
	}
	p.count(p.buf[:whole], end)
	_, p.writeErr = p.conn.Write(p.buf[:whole])
	p.buf = p.buf[:copy(p.buf, p.buf[whole:])]
}

// count adds the frames of text for which an answer is certain.
func (p *pump) count(text []byte, end bool) {
	for line := range bytes.Lines(text) {
		complete := end || line[len(line)-1] == '\n'
		if !p.inside && complete && answered(line) {
			p.owed++
		}
		// A line that comes in pieces is longer than the buffer. Nearly always it is owed an answer, but it may be blank, or
		// an event.
		p.inside = !complete
	}
}

// answered reports whether the kernel answers line whatever else it says. It does not answer a blank line or a valid
// event, so what is no frame of that kind by its letters alone is left out: `event`, also written with escapes.
func answered(line []byte) bool {
	return len(bytes.TrimLeft(line, " \t\r\n")) > 0 &&
		!bytes.Contains(line, []byte("event")) && !bytes.Contains(line, []byte(`\u`))
}

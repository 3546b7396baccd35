package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Tally counts the frames of a stream.
type Tally struct {
	Answers int // replies and errors
	Errors  int // errors among them
}

// Stream sends everything that it reads from in to the kernel, then half-closes. Meanwhile it writes every frame of the
// kernel to out, one line each, in either dialect (BRIDGE 4.4.1). It returns when the kernel has closed the connection
// and no Read of in is running. If the kernel closes first, Stream interrupts the Read with in.SetReadDeadline, or
// waits for it if in has no such method.
//
// It returns the cause of ctx's end, the error of in or out, or a fault.DaemonHungUp if the kernel closed before it had
// answered every message or before in had ended, unless this stream shut it down. The Tally counts the frames that were
// written to out, also with an error.
func (c *Client) Stream(ctx context.Context, in io.Reader, out io.Writer) (Tally, error) {
	c.mu.Lock()
	err := c.take(streaming)
	c.mu.Unlock()
	if err != nil {
		return Tally{}, fmt.Errorf("stream: %w", err)
	}
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(past) }) // fails only on a closed connection
	defer stop()

	p := pump{conn: c.conn, in: in}
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		p.run()
	}()
	d := drain{conn: c.conn, out: bufio.NewWriterSize(out, 64<<10)}
	d.run()
	closeErr := c.conn.Close()
	select {
	case <-pumped:
	default:
		if file, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
			_ = file.SetReadDeadline(past) // fails for files that never block
		}
		<-pumped
	}
	switch missing := p.expected - d.tally.Answers; {
	case ctx.Err() != nil:
		return d.tally, context.Cause(ctx)
	case d.outErr != nil:
		return d.tally, fmt.Errorf("write answers: %w", d.outErr)
	case p.readErr != nil:
		return d.tally, fmt.Errorf("read input: %w", p.readErr)
	case missing > 0:
		return d.tally, fault.DaemonHungUp.New("%s: %d answers are missing", hungUp, missing)
	case d.connErr != nil:
		return d.tally, lost(d.connErr)
	case !p.ended && !d.shutdown:
		return d.tally, fault.DaemonHungUp.New("%s before the input had ended", hungUp)
	}
	return d.tally, closeErr
}

// pump copies a stream's input to the kernel. It counts the lines that certainly get an answer, so that a missing
// answer is detected.
type pump struct {
	conn *conn
	in   io.Reader

	buf      []byte // read and not sent: an incomplete line
	inside   bool   // the last write ended inside a line
	expected int
	ended    bool  // all of in was sent
	readErr  error // of in, except io.EOF
	writeErr error // of the connection: the kernel has closed it, which drain reports
}

// pumpSize bounds the bytes of an incomplete line that are held back.
const pumpSize = 64 << 10

// run sends all of in and half-closes. It ends early if the connection ends.
func (p *pump) run() {
	p.buf = make([]byte, 0, pumpSize)
	for p.readErr == nil && p.writeErr == nil {
		n, err := p.in.Read(p.buf[len(p.buf):cap(p.buf)])
		p.buf = p.buf[:len(p.buf)+n]
		p.forward(err != nil)
		p.readErr = err
	}
	p.ended = p.writeErr == nil && errors.Is(p.readErr, io.EOF)
	if errors.Is(p.readErr, io.EOF) || errors.Is(p.readErr, os.ErrDeadlineExceeded) { // the latter: Stream has interrupted the read
		p.readErr = nil
	}
	_ = p.conn.CloseWrite() // fails if the kernel has closed, which drain reports
}

// forward sends the complete lines of buf; at the end of the input, or if buf is full, all of it.
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

// count counts the lines of text that certainly get an answer.
func (p *pump) count(text []byte, end bool) {
	for line := range bytes.Lines(text) {
		complete := end || line[len(line)-1] == '\n'
		if !p.inside && complete && needsAnswer(line) {
			p.expected++
		}
		// The line is longer than the buffer. It may be blank or an event, so its answer is not certain.
		p.inside = !complete
	}
}

// needsAnswer reports whether the kernel certainly answers a line. It answers neither a blank line nor a valid event; a
// line that contains `event`, or an escape that may hide it, may be one.
func needsAnswer(line []byte) bool {
	return len(bytes.TrimLeft(line, " \t\r\n")) > 0 &&
		!bytes.Contains(line, []byte("event")) && !bytes.Contains(line, []byte(`\u`))
}

// drain copies the kernel's frames to a stream's output.
type drain struct {
	conn *conn
	out  *bufio.Writer

	tally    Tally
	shutdown bool  // the kernel has confirmed that it ends
	outErr   error // of out
	connErr  error // of the connection
}

// run copies frames until the kernel closes or out fails. It flushes received frames before it waits for
// more.
func (d *drain) run() {
	for d.outErr == nil {
		line, ok, err := d.conn.TryNext()
		if !ok {
			if d.outErr = d.out.Flush(); d.outErr != nil {
				return
			}
			line, err = d.conn.Next()
		}
		if err != nil {
			d.outErr = d.out.Flush()
			if !errors.Is(err, io.EOF) {
				d.connErr = err
			}
			return
		}
		d.count(line)
		_, _ = d.out.Write(line) // a bufio.Writer keeps its first error
		d.outErr = d.out.WriteByte('\n')
	}
}

func (d *drain) count(line []byte) {
	switch kindOf(line) {
	case schema.KindError:
		d.tally.Errors++
		d.tally.Answers++
	case schema.KindReply:
		d.tally.Answers++
		d.shutdown = d.shutdown || bytes.HasPrefix(line, []byte(osMessageReply+`"Syscall.Shutdown"`)) ||
			bytes.HasPrefix(line, []byte(osEventReply+`"Syscall.Shutdown"`))
	}
}

// Prefixes of the kernel's frames.
const (
	osMessageReply = `{"kind":"reply","type":`
	osMessageError = `{"kind":"error","type":`
	osEventReply   = `{"type":"response","name":`
	osEventError   = `{"type":"error","name":`
)

// kindOf returns the kind of a frame from the kernel, 0 if it has none. A known prefix is enough, since a name must not
// occur twice in an object. Other frames are decoded.
func kindOf(line []byte) schema.Kind {
	switch {
	case bytes.HasPrefix(line, []byte(osMessageReply)), bytes.HasPrefix(line, []byte(osEventReply)):
		return schema.KindReply
	case bytes.HasPrefix(line, []byte(osMessageError)), bytes.HasPrefix(line, []byte(osEventError)):
		return schema.KindError
	}
	m, failure := schema.Decode(line, schema.OsMessage)
	if failure != nil {
		return 0
	}
	return m.Kind
}

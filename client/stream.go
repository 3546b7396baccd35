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
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Tally counts the frames of a stream.
type Tally struct {
	Answers int // replies and errors
	Errors  int // errors among them
}

// Stream sends everything that it reads from in to the kernel, then half-closes, and meanwhile writes every frame of the
// kernel to out, a line each, in either dialect (BRIDGE 4.4.1). It returns when the kernel has closed the connection and
// in has been let go: should the kernel close first, in is interrupted by SetReadDeadline if it has that, else its Read is
// waited for.
//
// It returns the cause of ctx's end, the error of in or out, or a fault.DaemonHungUp where the kernel closed before
// it had answered everything, or before in had ended, unless it was this stream that shut it down. The Tally counts what
// reached out in any case.
func (c *Client) Stream(ctx context.Context, in io.Reader, out io.Writer) (Tally, error) {
	c.mu.Lock()
	err := c.take(streaming)
	c.mu.Unlock()
	if err != nil {
		return Tally{}, fmt.Errorf("stream: %w", err)
	}
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(past) }) // fails when closed, which interrupts as well
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
			_ = file.SetReadDeadline(past) // fails for files that never make their reader wait
		}
		<-pumped
	}
	switch missing := p.owed - d.tally.Answers; {
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

// pump sends a stream's input to the kernel. It changes nothing, and counts how many answers the
// kernel must send at least, so that a lost one is noticed.
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
		if !p.inside && complete && needsAnswer(line) {
			p.owed++
		}
		// A line that comes in pieces is longer than the buffer. Nearly always it is owed an answer, but it may be blank, or
		// an event.
		p.inside = !complete
	}
}

// needsAnswer reports whether the kernel answers line whatever else it says. It does not answer a blank line or a valid
// event, so what is no frame of that kind by its letters alone is left out: `event`, also written with escapes.
func needsAnswer(line []byte) bool {
	return len(bytes.TrimLeft(line, " \t\r\n")) > 0 &&
		!bytes.Contains(line, []byte("event")) && !bytes.Contains(line, []byte(`\u`))
}

// drain copies the kernel's frames to a stream's output.
type drain struct {
	conn *unixsock.Conn
	out  *bufio.Writer

	tally    Tally
	shutdown bool  // the kernel has confirmed that it ends
	outErr   error // of out
	connErr  error // of the connection
}

// run copies frames until the kernel closes or out fails. What has come is written before it waits for more.
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

// The ways in which the kernel begins its frames.
const (
	osMessageReply = `{"kind":"reply","type":`
	osMessageError = `{"kind":"error","type":`
	osEventReply   = `{"type":"response","name":`
	osEventError   = `{"type":"error","name":`
)

// kindOf returns the kind of a frame from the kernel, 0 where it shows none. Since a name may not stand twice in an
// object, a beginning that is known decides; other frames are decoded.
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

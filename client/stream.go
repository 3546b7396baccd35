package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Tally counts what a stream brought.
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

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/schema"
)

// stream copies stdin to the kernel and the answers to stdout until both directions have ended (BRIDGE 4.4). If the
// first frame is an OsEvent, it uses events.sock, whose line limit is higher. With inline, the kernel runs in this process.
func (a *app) stream(ctx context.Context, inline bool) (err error) {
	ctx, cancel := a.Bound(ctx, 0)
	defer cancel()
	file, err := cli.NewPatientFile(a.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in := &begun{PatientFile: file}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Time{}) }) // fails only on a closed file
	dialect := in.dialect()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if inline {
		return daemon.Inline(ctx, nil, os.Getenv, a.Stderr, dialect, func(nc *net.UnixConn) error {
			return a.converse(ctx, client.Over(nc), in)
		})
	}
	c, err := a.DialWith(ctx, cli.Dialing{Events: dialect == schema.OsEvent})
	if err != nil {
		return err
	}
	return a.converse(ctx, c, in)
}

func (a *app) converse(ctx context.Context, c *client.Client, in io.Reader) (err error) {
	defer func() { err = errors.Join(err, c.Close()) }()
	tally, err := c.Stream(ctx, in, a.Stdout)
	if tally.Errors > 0 && (err == nil || errors.Is(err, syscall.EPIPE)) {
		return cli.ErrSeen
	}
	return err
}

// begun is the input of a stream, whose beginning may already have been read.
type begun struct {
	*cli.PatientFile
	head []byte // read ahead, not yet returned by Read
	err  error  // the error that ended the input
}

// dialect returns the dialect of the first frame. It is OsMessage if the first line is not a frame, or exceeds the limit of both dialects.
func (b *begun) dialect() schema.Dialect {
	const most = schema.MaxEventLine + 1
	for from, read := 0, 0; ; {
		end := bytes.IndexByte(b.head[read:], '\n')
		if end < 0 && b.err == nil && len(b.head) < most {
			read = len(b.head)
			b.fill()
			continue
		}
		line := b.head[from:]
		if end >= 0 {
			line = b.head[from : read+end]
		}
		if len(bytes.TrimLeft(line, " \t\r")) > 0 || end < 0 {
			m, _ := schema.Decode(line, schema.OsMessage) // the kernel reports an invalid frame
			return m.Dialect
		}
		from, read = read+end+1, read+end+1
	}
}

// fill reads more input into head.
func (b *begun) fill() {
	const chunk = 64 << 10
	if cap(b.head)-len(b.head) < chunk {
		b.head = append(make([]byte, 0, 2*cap(b.head)+chunk), b.head...)
	}
	var n int
	n, b.err = b.PatientFile.Read(b.head[len(b.head):cap(b.head)])
	b.head = b.head[:len(b.head)+n]
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	b.head = nil
	if b.err != nil {
		return 0, b.err
	}
	return b.PatientFile.Read(p)
}

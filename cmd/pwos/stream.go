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
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/schema"
)

// stream copies stdin to the kernel and its answers to stdout until both ends are done (BRIDGE 4.4). A stream whose
// first frame is an OsEvent goes to events.sock, where lines may be longer. With inline the kernel is in this
// process.
func (a *app) stream(ctx context.Context, inline bool) (err error) {
	ctx, cancel := a.bound(ctx, 0)
	defer cancel()
	file, err := newPatientFile(a.stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in := &begun{patientFile: file}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Time{}) }) // it fails when closed
	dialect := in.dialect()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if inline {
		return daemon.Inline(ctx, nil, os.Getenv, a.stderr, dialect, func(nc *net.UnixConn) error {
			c, err := client.Over(nc)
			if err != nil {
				return err
			}
			return a.converse(ctx, c, in)
		})
	}
	c, err := a.dialWith(ctx, dialing{events: dialect == schema.OsEvent})
	if err != nil {
		return err
	}
	return a.converse(ctx, c, in)
}

func (a *app) converse(ctx context.Context, c *client.Client, in io.Reader) (err error) {
	defer func() { err = errors.Join(err, c.Close()) }()
	tally, err := c.Stream(ctx, in, a.stdout)
	if tally.Errors > 0 && (err == nil || errors.Is(err, syscall.EPIPE)) {
		return errSeen
	}
	return err
}

// begun is the input of a stream. Its first line may already have been read.
type begun struct {
	*patientFile
	head []byte // read, not passed on
	err  error  // that ended it
}

// dialect returns the dialect of the first frame: OsMessage if that is not a frame, or is longer than any
// line may be.
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
			m, _ := schema.Decode(line, schema.OsMessage) // the kernel refuses anything that is not a frame
			return m.Dialect
		}
		from, read = read+end+1, read+end+1
	}
}

// fill reads more of it.
func (b *begun) fill() {
	const chunk = 64 << 10
	if cap(b.head)-len(b.head) < chunk {
		b.head = append(make([]byte, 0, 2*cap(b.head)+chunk), b.head...)
	}
	var n int
	n, b.err = b.patientFile.Read(b.head[len(b.head):cap(b.head)])
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
	return b.patientFile.Read(p)
}

package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// drain is the way of the kernel's frames to a stream's output.
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

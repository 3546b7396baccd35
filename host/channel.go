package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is the kernel's end of a program's channel. Read returns io.EOF when the program, and every process that has its
// output, has closed it. Write returns an error that wraps syscall.EPIPE when the channel has no reader any more; it raises
// no signal.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite ends the program's input: it reads the end of the file and may still write.
	CloseWrite() error
	// SetReadDeadline and SetWriteDeadline work as those of net.Conn.
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// RawConns returns the two directions for callers that must not block; for a socket both are the same.
	RawConns() (in, out syscall.RawConn, err error)
}

// pipes is the channel over standard input and output. Neither file is embedded, since its methods, such as WriteString,
// would write to the wrong one.
type pipes struct {
	out     *os.File // read from the program's output
	in      *os.File
	closeIn func() error
}

// Read implements io.Reader.
func (p *pipes) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write implements io.Writer.
func (p *pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

// RawConns implements Conn.
func (p *pipes) RawConns() (in, out syscall.RawConn, err error) {
	if in, err = p.out.SyscallConn(); err != nil {
		return nil, nil, err
	}
	out, err = p.in.SyscallConn()
	return in, out, err
}

// CloseWrite implements Conn.
func (p *pipes) CloseWrite() error { return p.closeIn() }

// SetReadDeadline implements Conn.
func (p *pipes) SetReadDeadline(t time.Time) error { return p.out.SetReadDeadline(t) }

// SetWriteDeadline implements Conn.
func (p *pipes) SetWriteDeadline(t time.Time) error { return p.in.SetWriteDeadline(t) }

// Close closes both directions. It may be called twice.
func (p *pipes) Close() error {
	err := errors.Join(p.closeIn(), p.out.Close())
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// ends are the descriptors of a program that is about to start.
type ends struct {
	conn   Conn
	log    *os.File     // read from the program's standard error
	outlet *outlet      // where the program's caller reads it
	caller *caller      // whose descriptors the program gets; nil: nobody's
	copies []copied     // through which the program has files of its caller
	files  []descriptor // the program's, by number
	extra  []io.Closer  // to be closed with them
}

// descriptor is an open file that is passed to a program.
type descriptor interface{ Fd() uintptr }

// openEnds opens the descriptors of a command's program. With piped, it gets no file of its caller, but copies through pipes.
func (h *Host) openEnds(ctx context.Context, c Command, piped bool) (e *ends, err error) {
	e = &ends{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.closeAll())
		}
	}()
	if e.outlet, err = h.openOutlet(c.Stderr); err != nil {
		return e, err
	}
	logEnd, err := e.pipe(&e.log)
	if err != nil {
		return e, err
	}
	if c.Channel == ChannelFD3 {
		conn, theirs, err := socketPair()
		if err != nil {
			return e, fmt.Errorf("open channel: %w", err)
		}
		e.conn, e.extra = conn, append(e.extra, theirs)
		if c.Stdio != "" {
			if err := e.take(ctx, c.Stdio, piped); err != nil {
				return e, err
			}
			e.files = append(e.files, theirs)
			if e.caller.logs && c.Log.Shown {
				err = e.caller.giveLog(logEnd)
			}
			return e, err // else the log ends at once, since no process has logEnd
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			return e, fmt.Errorf("open channel: %w", err)
		}
		e.extra = append(e.extra, null)
		e.files = []descriptor{null, logEnd, logEnd, theirs}
		return e, nil
	}
	p := &pipes{}
	stdout, err := e.pipe(&p.out)
	if err != nil {
		return e, err
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return e, errors.Join(fmt.Errorf("open channel: %w", err), p.out.Close())
	}
	p.in, p.closeIn = in, sync.OnceValue(in.Close)
	e.conn, e.extra = p, append(e.extra, stdin)
	e.files = []descriptor{stdin, stdout, logEnd}
	return e, nil
}

// pipe opens a pipe that the program writes to, and sets ours to its reading end.
func (e *ends) pipe(ours **os.File) (theirs *os.File, err error) {
	*ours, theirs, err = os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	e.extra = append(e.extra, theirs)
	return theirs, nil
}

// take gives the program the descriptors of its caller.
func (e *ends) take(ctx context.Context, path string, piped bool) error {
	from, err := openCaller(ctx, path)
	if err != nil {
		return err
	}
	e.caller = from
	files := e.caller.files
	e.caller.files = nil
	for _, file := range files {
		e.extra = append(e.extra, file)
	}
	for fd, file := range files {
		var given descriptor = file
		if piped && file.regular() {
			if given, err = e.through(file, fd == 0); err != nil {
				return err
			}
		}
		e.files = append(e.files, given)
	}
	return nil
}

// copied is a file of a caller, and the host's end of the pipe that the program has in its place.
type copied struct {
	from, to *os.File
	output   bool // the program writes
}

// through opens a pipe that the program gets in place of a file.
func (e *ends) through(file handed, input bool) (theirs *os.File, err error) {
	own, err := file.dup()
	if err != nil {
		return nil, err
	}
	c := copied{from: own, output: !input}
	if input {
		theirs, c.to, err = os.Pipe()
	} else {
		c.to = own
		c.from, theirs, err = os.Pipe()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open channel: %w", err), own.Close())
	}
	e.copies, e.extra = append(e.copies, c), append(e.extra, theirs)
	return theirs, nil
}

// copy copies until the program, or the file, has ended.
func (c copied) copy() {
	_, _ = io.Copy(c.to, c.from) // a program sees no error of its caller's disk either, once it has ended
	_ = c.close()
}

func (c copied) close() error { return errors.Join(c.from.Close(), c.to.Close()) }

// closeTheirs closes the program's ends in this process, so that only the program has them.
func (e *ends) closeTheirs() error {
	var errs []error
	for _, f := range e.extra {
		errs = append(errs, f.Close())
	}
	e.extra = nil
	return errors.Join(errs...)
}

// closeAll closes both sides.
func (e *ends) closeAll() error {
	err := e.closeTheirs()
	if e.log != nil {
		err = errors.Join(err, e.log.Close())
	}
	if e.conn != nil {
		err = errors.Join(err, e.conn.Close())
	}
	for _, c := range e.copies {
		err = errors.Join(err, c.close())
	}
	if e.caller != nil {
		err = errors.Join(err, e.caller.close())
	}
	if e.outlet != nil {
		e.outlet.deliver() // nothing
	}
	return err
}

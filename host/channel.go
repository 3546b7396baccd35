package host

import (
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
	log    *os.File   // read from the program's standard error
	outlet *outlet    // where the program's caller reads it
	files  []*os.File // the program's, by number
	extra  []*os.File // to be closed with them
}

// openEnds opens the descriptors of a command's program.
func (h *Host) openEnds(c Command) (e *ends, err error) {
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
		if c.TTY != "" {
			tty, err := openTerminal(c.TTY)
			if err != nil {
				return e, fmt.Errorf("open terminal: %w", err)
			}
			e.extra = append(e.extra, tty)
			e.files = []*os.File{tty, tty, tty, theirs}
			return e, nil // the log ends with logEnd, of which no process has the other end
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			return e, fmt.Errorf("open channel: %w", err)
		}
		e.extra = append(e.extra, null)
		e.files = []*os.File{null, logEnd, logEnd, theirs}
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
	e.files = []*os.File{stdin, stdout, logEnd}
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
	if e.outlet != nil {
		e.outlet.deliver() // nothing
	}
	return err
}

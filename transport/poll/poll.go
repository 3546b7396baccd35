package poll

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Event is a set of events of a stream.
type Event uint8

// Events.
const (
	In  Event = 1 << iota // reading may succeed: bytes, the end of input, or an error
	Out                   // writing may succeed again
	Hup                   // both directions have ended
)

// ErrAgain means that nothing can be read without waiting.
var ErrAgain = errors.New("nothing to read without waiting")

// Poller waits for streams. One goroutine at a time may call Wait; the other methods may be called from any.
type Poller interface {
	// Wait returns when a stream is ready, after Wake, or after the timeout; 0 does not wait, and a negative one waits
	// without bound. It calls the notify function of each ready stream. It may also return for no reason. The error is
	// net.ErrClosed after Close. awake, if not nil, is called before the first notify, or before Wait returns: from then
	// on Wake is not needed.
	Wait(timeout time.Duration, awake func()) error
	// Wake makes the current Wait return, or the next one if none runs.
	Wake()
	// Add takes over s and returns it as a stream. It closes s at once, or when the stream is closed. Wait calls notify,
	// possibly on another goroutine before Add has returned. After an error s still belongs to the caller.
	Add(s Source, notify func(Event)) (Stream, error)
	// Close closes the poller and every open stream. The current Wait returns.
	Close() error
}

// Stream is read and written without waiting, by one goroutine at a time. The methods that close may be called from any
// goroutine, and more than once. After them, reads and writes return net.ErrClosed.
type Stream interface {
	// Read reads once. If more is false nothing is left, and In is reported when input arrives. The error is ErrAgain if
	// there is no input, io.EOF at its end.
	Read(p []byte) (n int, more bool, err error)
	// Write writes as much as the peer accepts. If that is not all and the error is nil, Out is reported when more can be
	// written.
	Write(p []byte) (n int, err error)
	// CloseRead ends the input: bytes that have arrived can be read, then io.EOF. It does nothing on pipes.
	CloseRead() error
	Close() error
}

// File is a stream that the Go runtime polls, such as a *net.UnixConn or an *os.File.
type File interface {
	io.Closer
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Source is a stream before Add.
type Source struct {
	File    File
	In, Out syscall.RawConn // the descriptors for reading and writing; the same one for a socket
}

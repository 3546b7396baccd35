package poll

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Event says what has become possible on a stream; bits.
type Event uint8

// The events.
const (
	In  Event = 1 << iota // reading may succeed: bytes, the end of input, or an error
	Out                   // writing may succeed again
	Hup                   // both directions have ended: the peer has left
)

// ErrAgain says that nothing can be read without waiting.
var ErrAgain = errors.New("nothing to read without waiting")

// Poller waits for streams. One goroutine at a time may Wait; the other methods may be called from any.
type Poller interface {
	// Wait returns when a stream became ready, after Wake, or after the timeout; 0 looks without
	// waiting, a negative one waits without bound. It calls the tell function of each ready stream.
	// It may return for no reason. The error is net.ErrClosed after Close. awake, if not nil, is
	// called before the first tell, and in any case before Wait returns: from then on Wake is not
	// needed.
	Wait(timeout time.Duration, awake func()) error
	// Wake has the Wait that runs return, or else the next one.
	Wake()
	// Add takes s over and returns it as a stream; Close of s has been called, or is called when the stream is closed. tell is
	// called by Wait, which may be on another goroutine before Add has returned. After an error s is still the caller's.
	Add(s Source, tell func(Event)) (Stream, error)
	// Close closes the poller and every stream that is still open. A Wait that runs returns.
	Close() error
}

// Stream is read and written without waiting, by one goroutine at a time. The methods that close may be called from any goroutine, and
// more than once. What is closed returns net.ErrClosed.
type Stream interface {
	// Read reads once. If more is false nothing is left for now, and In is reported when there is.
	// The error is ErrAgain if nothing was there, io.EOF at the end of input.
	Read(p []byte) (n int, more bool, err error)
	// Write writes what the peer takes. If that is not all and the error is nil, Out is reported
	// when it is worth trying again.
	Write(p []byte) (n int, err error)
	// CloseRead ends the input: what has arrived can be read, then the end. It does nothing on
	// pipes.
	CloseRead() error
	Close() error
}

// File is a stream that the Go runtime polls, such as a *net.UnixConn or an *os.File.
type File interface {
	io.Closer
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Source is what Add takes over.
type Source struct {
	File    File
	In, Out syscall.RawConn // of one descriptor, or of two: what is read from and what is written to
}

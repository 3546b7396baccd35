package actors

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// Link is a channel of lines that never makes its caller wait. The loop is its caller; Interrupt and Close are for any goroutine.
type Link interface {
	// Open has p watch the link from now on. ready is told what has become possible, on any goroutine: poll.In where Fill may
	// have something, at once if that is so already; poll.Out after a Write that did not write all; poll.Hup when the peer has
	// gone altogether, and not only ended its side.
	Open(p poll.Poller, ready func(poll.Event)) error
	// Fill reads once from what was received. Where more is false, nothing is left for now: ready tells when there is. Called again
	// then, it gives back the buffer that the lines were in.
	Fill() (more bool)
	// Next returns the next line of what Fill has read, valid until the next Fill; ok is false where there is none.
	// schema.ErrLineTooLong is not final, other errors are: io.EOF where the peer has ended its side.
	Next() (line []byte, ok bool, err error)
	// Write writes as much as the peer takes without waiting.
	Write(p []byte) (n int, err error)
	// Dialect is the dialect to answer in where a frame shows none.
	Dialect() schema.Dialect
	// LineLimit is the longest line in bytes.
	LineLimit() int
	// Interrupt makes Next return what was received already, and then an error other than io.EOF; ready is told poll.In and
	// poll.Hup. It may be called again.
	Interrupt()
	// Close ends both directions. It may be called again.
	Close() error
}

// The window of a connection: what it may have in flight, from reading a frame until its answer is written. It bounds what a
// connection takes of a turn as well.
const (
	windowFrames = 128
	windowBytes  = 256 << 10
)

// credits is the window that bounds a connection's memory: a client that does not read its answers is no longer read from.
type credits struct {
	frames  int
	bytes   int
	account *drawing // that the bytes are charged to as well; nil: to none
}

// take takes what a frame of size bytes needs, if the window and the account have room; the first frame always fits the window.
func (c *credits) take(size int) bool {
	if !c.open(size) || !c.account.tryTake(size) {
		return false
	}
	c.frames++
	c.bytes += size
	return true
}

// open reports whether the window has room for a frame of size bytes.
func (c *credits) open(size int) bool {
	return c.frames == 0 || c.frames < windowFrames && c.bytes+size <= windowBytes
}

// grow adds to what the last frame has taken, once there is room or all others are answered.
func (c *credits) grow(size int) bool {
	if c.frames > 1 && c.bytes+size > windowBytes {
		return false
	}
	c.bytes += size
	c.account.add(size)
	return true
}

// give takes back credits, and what the answers have taken of the account.
func (c *credits) give(frames, bytes, answers int) {
	c.frames -= frames
	c.bytes -= bytes
	c.account.give(bytes + answers)
}

package actors

import (
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// Link is a channel of lines as a connection needs it. One goroutine reads, one writes.
type Link interface {
	// Next returns the next line, valid until the next call; schema.ErrLineTooLong is not final, other errors are.
	Next() ([]byte, error)
	// TryNext is Next for what has been received already; ok is false where Next would wait.
	TryNext() (line []byte, ok bool, err error)
	// TryWrite writes as much as the peer takes without waiting.
	TryWrite(p []byte) (n int, err error)
	// Write writes all of p, waiting for the peer.
	Write(p []byte) (n int, err error)
	// Dialect is the dialect to answer in where a frame shows none.
	Dialect() schema.Dialect
	// LineLimit is the longest line in bytes.
	LineLimit() int
	// AwaitHangup waits, after Next has returned its final error, until the peer has gone altogether and not only ended
	// its side, or until Interrupt or Close.
	AwaitHangup()
	// Interrupt makes Next return what was received already, and then an error. It may be called again.
	Interrupt()
	// Close ends both directions; waiting reads and writes return.
	Close() error
}

// The window of a connection: what it may have in flight, from reading a frame until its answer is flushed.
const (
	windowFrames = 128
	windowBytes  = 256 << 10
)

// credits is the window that bounds a connection's memory. The reader takes before it sends, the connection gives back
// after the flush, so a client that does not read its answers is no longer read from.
type credits struct {
	mu     sync.Mutex
	space  sync.Cond
	frames int
	bytes  int
	closed bool

	account *drawing // that the bytes are charged to as well; nil: to none
}

func newCredits(drawn *drawing) *credits {
	c := &credits{account: drawn}
	c.space.L = &c.mu
	return c
}

// take waits until a frame of size bytes fits the window, and then the account; the first frame always fits the window. It
// returns false after close.
func (c *credits) take(size int) bool {
	c.mu.Lock()
	for !c.closed && !c.fits(size) {
		c.space.Wait()
	}
	c.add(size)
	closed := c.closed
	c.mu.Unlock()
	return !closed && (c.account == nil || c.account.take(size, c.over))
}

// tryTake is take without waiting.
func (c *credits) tryTake(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.fits(size) || !c.account.tryTake(size) {
		return false
	}
	c.add(size)
	return true
}

// grow adds to what the last frame has taken, once there is room or all others are answered. It returns false after close.
func (c *credits) grow(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.frames > 1 && c.bytes+size > windowBytes {
		c.space.Wait()
	}
	c.bytes += size
	c.account.add(size)
	return !c.closed
}

// over reports whether the wait for credits has ended.
func (c *credits) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *credits) add(size int) {
	c.frames++
	c.bytes += size
}

func (c *credits) fits(size int) bool {
	return c.frames == 0 || (c.frames < windowFrames && c.bytes+size <= windowBytes)
}

// give takes back credits, and what the answers have taken of the account.
func (c *credits) give(frames, bytes, answers int) {
	c.mu.Lock()
	c.frames -= frames
	c.bytes -= bytes
	c.mu.Unlock()
	c.space.Signal()
	c.account.give(bytes + answers)
}

// close lets a waiting reader go.
func (c *credits) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.space.Signal()
	if c.account != nil {
		c.account.account.wake()
	}
}

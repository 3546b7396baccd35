package poll

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readers is the portable poller: for each stream, goroutines wait in the Go runtime and pass events to Wait.
type readers struct {
	signal   chan struct{} // capacity 1: Wait checks due and woken again
	watchers sync.WaitGroup

	mu      sync.Mutex
	streams map[*readersStream]struct{}
	due     []*readersStream // with events that are not reported yet
	woken   bool
	closed  bool

	timer *time.Timer      // of the current Wait
	ready []*readersStream // that the current Wait reports
}

// readersStream is a stream of a readers.
type readersStream struct {
	poller *readers
	file   File
	notify func(Event)
	pair   bool
	happen Event // not reported yet; the poller's mu guards it

	mu      sync.Mutex
	in, out direction
	buf     []byte // of the Read or Write in progress, with its result
	n       int
	left    bool
	full    bool
	err     error
	ended   bool // input has ended, or ends after the bytes that can be read
	shut    bool // of a pair: the output has no reader
	closed  bool
}

// direction is a stream's input or output. Its functions are made once, since a closure for each call would be an
// allocation for each.
type direction struct {
	raw   syscall.RawConn
	once  func(fd uintptr)               // one attempt of Read or Write
	wait  func(func(uintptr) bool) error // returns when its argument returns true, which it calls after each change
	look  func(fd uintptr) bool          // posts events, and reports whether nothing more is to be waited for
	clear func(time.Time) error          // sets the deadline of wait

	wanted  bool // In or Out is to be reported
	watched bool // a goroutine waits
}

// NewReaders returns the portable poller. Its Wait blocks only on a channel and a timer.
func NewReaders() Poller {
	return &readers{signal: make(chan struct{}, 1), streams: make(map[*readersStream]struct{})}
}

// Wait implements Poller.
func (p *readers) Wait(timeout time.Duration, awake func()) error {
	var expired <-chan time.Time
	for {
		ready, err := p.take()
		if err != nil {
			return err
		}
		if ready || timeout == 0 {
			if awake != nil {
				awake()
			}
			p.notifyAll()
			return nil
		}
		if timeout > 0 && expired == nil {
			expired = p.after(timeout)
			defer p.timer.Stop()
		}
		select {
		case <-p.signal:
		case <-expired:
			timeout = 0
		}
	}
}

// after starts the timer, which is reused.
func (p *readers) after(d time.Duration) <-chan time.Time {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	return p.timer.C
}

// take moves the due streams to ready, and reports whether Wait has to return.
func (p *readers) take() (ready bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, net.ErrClosed
	}
	ready = p.woken || len(p.due) > 0
	p.woken = false
	p.ready, p.due = p.due, p.ready[:0]
	return ready, nil
}

// notifyAll calls the notify functions of the ready streams.
func (p *readers) notifyAll() {
	for _, s := range p.ready {
		p.mu.Lock()
		now := s.happen
		s.happen = 0
		p.mu.Unlock()
		if now != 0 {
			s.notify(now)
		}
	}
	clear(p.ready)
}

// Wake implements Poller.
func (p *readers) Wake() {
	p.mu.Lock()
	p.woken = true
	p.mu.Unlock()
	p.look()
}

// look makes the current Wait check due and woken again.
func (p *readers) look() {
	select {
	case p.signal <- struct{}{}:
	default: // a signal is pending
	}
}

// Close implements Poller. It returns when the goroutines have ended.
func (p *readers) Close() error {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.streams))
	p.mu.Unlock()
	p.look()
	var err error
	for _, s := range open {
		err = errors.Join(err, s.Close())
	}
	p.watchers.Wait()
	return err
}

// Add implements Poller.
func (p *readers) Add(src Source, notify func(Event)) (Stream, error) {
	in, out, err := descriptors(src)
	if err != nil {
		return nil, err
	}
	s := &readersStream{poller: p, file: src.File, notify: notify, pair: in != out}
	s.in = direction{raw: src.In, once: s.readOnce, wait: src.In.Read, look: s.lookIn, clear: src.File.SetReadDeadline, wanted: true}
	s.out = direction{raw: src.Out, once: s.writeOnce, wait: src.Out.Write, look: s.lookOut, clear: src.File.SetWriteDeadline}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.enter(s) {
		return nil, net.ErrClosed
	}
	s.watch(&s.in)
	if s.pair {
		s.watch(&s.out)
	}
	return s, nil
}

// enter registers s. It returns false after Close.
func (p *readers) enter(s *readersStream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.streams[s] = struct{}{}
	return true
}

// post passes events to Wait.
func (s *readersStream) post(now Event) {
	if now == 0 {
		return
	}
	p := s.poller
	p.mu.Lock()
	if _, open := p.streams[s]; open {
		if s.happen == 0 {
			p.due = append(p.due, s)
		}
		s.happen |= now
	}
	p.mu.Unlock()
	p.look()
}

// watch ensures that a goroutine waits for d. A goroutine that is waiting checks wanted after each change, under mu.
// The caller holds mu.
func (s *readersStream) watch(d *direction) {
	if d.watched {
		return
	}
	d.watched = true
	s.poller.watchers.Go(func() {
		for {
			err := d.wait(d.look) // the original stream may have a deadline
			if !errors.Is(err, os.ErrDeadlineExceeded) || d.clear(time.Time{}) != nil {
				return
			}
		}
	})
}

// lookIn is the look function of the input. After the end of input it waits for a hang-up.
func (s *readersStream) lookIn(fd uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked int16
	if s.in.wanted {
		asked = unix.POLLIN
	}
	got := revents(fd, asked)
	var now Event
	over := got&^unix.POLLIN != 0
	if over {
		s.ended = true
		now = In
	}
	if got&unix.POLLIN != 0 {
		now = In
	}
	if now != 0 {
		s.in.wanted = false
	}
	if over && (!s.pair || s.shut) {
		now |= Hup
	}
	s.post(now)
	s.in.watched = !over
	return over
}

// lookOut is the look function of the output. For a pair it continues until the output has no reader.
func (s *readersStream) lookOut(fd uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked int16
	if s.out.wanted {
		asked = unix.POLLOUT
	}
	got := revents(fd, asked)
	var now Event
	over := got&^unix.POLLOUT != 0
	if s.out.wanted && got != 0 {
		s.out.wanted = false
		now = Out
	}
	if over && s.pair {
		s.shut = true
		if s.ended {
			now |= Hup | In
		}
	}
	s.post(now)
	s.out.watched = !over && (s.pair || s.out.wanted)
	return !s.out.watched
}

// revents returns the events of fd by poll(2); POLLHUP and POLLERR are always included.
func revents(fd uintptr, asked int16) int16 {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: asked}}
		n, err := unix.Poll(fds, 0)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return unix.POLLERR
		case n == 0:
			return 0
		default:
			return fds[0].Revents
		}
	}
}

// Read implements Stream.
func (s *readersStream) Read(p []byte) (n int, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err = s.try(&s.in, p)
	more = err == nil && (n == len(p) || s.ended || s.left)
	if !more && !s.ended && !s.in.wanted && (err == nil || err == ErrAgain) {
		s.in.wanted = true
		s.watch(&s.in)
	}
	return n, more, err
}

// readOnce reads, and checks what is left: nothing else reports an end that came while In was not wanted.
func (s *readersStream) readOnce(fd uintptr) {
	s.n, s.err = read(int(fd), s.buf)
	s.left = s.err == nil && s.n < len(s.buf) && revents(fd, unix.POLLIN) != 0
}

// Write implements Stream.
func (s *readersStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = false
	n, err := s.try(&s.out, p)
	if s.full && !s.out.wanted {
		s.out.wanted = true
		s.watch(&s.out)
	}
	return n, err
}

func (s *readersStream) writeOnce(fd uintptr) { s.n, s.full, s.err = write(int(fd), s.buf) }

// try makes one attempt to read or write. The caller holds mu.
func (s *readersStream) try(d *direction, p []byte) (int, error) {
	if s.closed {
		return 0, net.ErrClosed
	}
	s.buf, s.n, s.err = p, 0, nil
	err := d.raw.Control(d.once)
	s.buf = nil
	if err == nil {
		err = s.err
	}
	return s.n, err
}

// CloseRead implements Stream.
func (s *readersStream) CloseRead() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.pair:
		return nil
	}
	s.ended = true
	controlErr := s.in.raw.Control(func(fd uintptr) { err = shutdown(int(fd)) })
	return errors.Join(controlErr, err)
}

// Close implements Stream.
func (s *readersStream) Close() error {
	if !s.leave() {
		return nil
	}
	return s.file.Close() // Close waits for running looks, which lock mu
}

// leave removes the stream. It returns false if it was removed before.
func (s *readersStream) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	p := s.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
	s.happen = 0
	return true
}

package poll

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// batch is the maximum number of events of one Wait.
const batch = 256

// The requested events. Out is requested only after an incomplete Write: otherwise each read of the peer would wake the
// loop.
const (
	wantIn  = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	wantOut = unix.EPOLLOUT
)

// wakeKey is the slot of the eventfd.
const wakeKey = -1

// States of the loop, for Wake.
const (
	running  int32 = iota
	sleeping       // in epoll_wait, or about to call it
	woken          // the current Wait, or the next one, returns
)

// epoll is the poller of Linux.
type epoll struct {
	fd    int
	event int // the eventfd of Wake; it is edge-triggered and never read
	state atomic.Int32

	mu      sync.Mutex
	slots   []slot
	free    []int32 // numbers of slots that are not in use
	waiting bool    // a Wait uses the descriptors
	closed  bool

	events [batch]unix.EpollEvent // of the current Wait
	ready  [batch]*epollStream
}

// slot holds a stream. Its age distinguishes the events of its stream from those of earlier ones.
type slot struct {
	stream *epollStream
	age    int32
}

// epollStream is a stream of an epoll.
type epollStream struct {
	poller *epoll
	notify func(Event)
	slot   int32
	age    int32

	mu      sync.Mutex // locked during system calls, so that Close does not close the descriptors under them
	in, out int        // equal for a socket
	pair    bool
	armed   bool // Out is requested
	ended   bool // input has ended, or ends after the bytes that can be read
	shut    bool // of a pair: the output has no reader
	hup     bool // Hup was reported
	closed  bool
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), unix.Close(fd))
	}
	p := &epoll{fd: fd, event: event}
	if err := p.control(unix.EPOLL_CTL_ADD, event, unix.EPOLLIN|unix.EPOLLET, wakeKey, 0); err != nil {
		return nil, errors.Join(err, unix.Close(event), unix.Close(fd))
	}
	return p, nil
}

// control calls epoll_ctl. An event of fd carries the two keys.
func (p *epoll) control(op, fd int, events uint32, slot, key int32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &unix.EpollEvent{Events: events, Fd: slot, Pad: key}))
}

// Wait implements Poller.
func (p *epoll) Wait(timeout time.Duration, awake func()) error {
	if !p.begin() {
		return net.ErrClosed
	}
	n, err := p.waitEvents(timeout)
	if awake != nil {
		awake()
	}
	if !p.end(n) {
		return net.ErrClosed
	}
	for i, s := range p.ready[:n] {
		if s == nil {
			continue
		}
		p.ready[i] = nil
		e := &p.events[i]
		if now := s.happened(e.Events, e.Pad&1 != 0); now != 0 {
			s.notify(now)
		}
	}
	return err
}

// begin keeps the descriptors open until end. It returns false after Close.
func (p *epoll) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = !p.closed
	return p.waiting
}

// end looks up the streams of n events. It returns false after Close.
func (p *epoll) end(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	if p.closed {
		_ = p.release() // open descriptors can be closed without an error
		return false
	}
	for i := range p.events[:n] {
		e := &p.events[i]
		if e.Fd == wakeKey {
			continue
		}
		if s := p.slots[e.Fd]; s.stream != nil && s.age == e.Pad>>1 {
			p.ready[i] = s.stream
		}
	}
	return true
}

// waitEvents fills in the events and returns their number.
func (p *epoll) waitEvents(timeout time.Duration) (int, error) {
	until := time.Time{}
	if timeout > 0 {
		until = time.Now().Add(timeout)
	}
	if timeout != 0 && !p.state.CompareAndSwap(running, sleeping) {
		timeout = 0
	}
	defer p.state.Store(running)
	for {
		n, err := p.poll(timeout)
		if err == nil {
			return n, nil
		}
		if err != unix.EINTR {
			return 0, os.NewSyscallError("epoll_wait", err)
		}
		if timeout > 0 {
			timeout = max(0, time.Until(until))
		}
	}
}

func (p *epoll) poll(timeout time.Duration) (int, error) {
	if timeout == 0 {
		return sysPoll(p.fd, p.events[:])
	}
	return unix.EpollWait(p.fd, p.events[:], milliseconds(timeout))
}

// milliseconds rounds up: a loop would spin if Wait returned before the timeout.
func milliseconds(d time.Duration) int {
	const most = 1<<31 - 1
	switch {
	case d < 0:
		return -1
	case d > (most-1)*time.Millisecond:
		return most
	}
	return int((d + time.Millisecond - 1) / time.Millisecond)
}

// Wake implements Poller.
func (p *epoll) Wake() {
	if p.state.Swap(woken) != sleeping {
		return // Wait checks the state before it sleeps
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.signal()
	}
}

// signal ends the current epoll_wait. The caller holds mu.
func (p *epoll) signal() {
	var one [8]byte // the smallest increment: the counter is never read, and must not overflow
	binary.NativeEndian.PutUint64(one[:], 1)
	for {
		if _, err := unix.Write(p.event, one[:]); err != unix.EINTR {
			return // the only other error, a full counter, takes centuries
		}
	}
}

// Close implements Poller.
func (p *epoll) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	var err error
	if p.waiting {
		p.signal() // Wait releases the descriptors
	} else {
		err = p.release()
	}
	var open []*epollStream
	for _, s := range p.slots {
		if s.stream != nil {
			open = append(open, s.stream)
		}
	}
	p.mu.Unlock()
	for _, s := range open {
		err = errors.Join(err, s.Close())
	}
	return err
}

// release closes the descriptors. The caller holds mu.
func (p *epoll) release() error {
	return errors.Join(unix.Close(p.fd), unix.Close(p.event))
}

// Add implements Poller. The runtime polls its descriptors and would wake one of its threads for every event, so the
// stream uses a duplicate, and the original is closed.
func (p *epoll) Add(src Source, notify func(Event)) (Stream, error) {
	s := &epollStream{poller: p, notify: notify}
	in, out, err := descriptors(src)
	if err != nil {
		return nil, err
	}
	s.pair = in != out
	if s.in, err = duplicate(src.In.Control); err != nil {
		return nil, err
	}
	s.out = s.in
	if s.pair {
		if s.out, err = duplicate(src.Out.Control); err != nil {
			return nil, errors.Join(err, unix.Close(s.in))
		}
	}
	err = p.enter(s)
	if err == nil {
		if err = src.File.Close(); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.Close())
}

// errBlocks refuses a descriptor whose system calls may block, and with them the loop.
var errBlocks = errors.New("poll: the descriptor blocks")

// duplicate returns a duplicate of the descriptor that control passes.
func duplicate(control func(func(uintptr)) error) (fd int, err error) {
	controlErr := control(func(original uintptr) {
		if blocks(int(original)) {
			err = errBlocks
			return
		}
		fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
		err = os.NewSyscallError("fcntl", err)
	})
	return fd, errors.Join(controlErr, err)
}

// enter gives s a slot and requests its events.
func (p *epoll) enter(s *epollStream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.slot = wakeKey
		return net.ErrClosed
	}
	if last := len(p.free) - 1; last >= 0 {
		s.slot = p.free[last]
		p.free = p.free[:last]
	} else {
		s.slot = int32(len(p.slots))
		p.slots = append(p.slots, slot{})
	}
	place := &p.slots[s.slot]
	place.stream = s
	s.age = place.age
	err := p.control(unix.EPOLL_CTL_ADD, s.in, wantIn, s.slot, s.age<<1)
	if err == nil && s.pair {
		err = p.control(unix.EPOLL_CTL_ADD, s.out, unix.EPOLLET, s.slot, s.age<<1|1) // an error is always reported
	}
	return err
}

// leave frees the slot of s before its descriptors are closed. A forked process may keep them open
// for a moment, so closing alone does not end their events.
func (p *epoll) leave(s *epollStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.slot == wakeKey {
		return
	}
	if !p.closed {
		_ = p.control(unix.EPOLL_CTL_DEL, s.in, 0, 0, 0) // fails if the stream was never added
		if s.pair {
			_ = p.control(unix.EPOLL_CTL_DEL, s.out, 0, 0, 0) // as above
		}
	}
	place := &p.slots[s.slot]
	place.stream = nil
	place.age = (place.age + 1) & (1<<30 - 1)
	p.free = append(p.free, s.slot)
}

// arm requests Out, or cancels that. The caller holds s.mu.
func (p *epoll) arm(s *epollStream, armed bool) error {
	if s.armed == armed {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	events, key := uint32(wantIn), s.age<<1
	if s.pair {
		events, key = unix.EPOLLET, key|1
	}
	if armed {
		events |= wantOut
	}
	if err := p.control(unix.EPOLL_CTL_MOD, s.out, events, s.slot, key); err != nil {
		return err
	}
	s.armed = armed
	return nil
}

// happened translates events of the operating system. second means those of the second descriptor of a pair.
func (s *epollStream) happened(events uint32, second bool) (now Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	over := events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
	if over && second {
		s.shut = true
	} else if over || events&unix.EPOLLRDHUP != 0 {
		s.ended = true
		now |= In
	}
	if events&unix.EPOLLIN != 0 {
		now |= In
	}
	if s.armed && (over && second == s.pair || events&unix.EPOLLOUT != 0) {
		_ = s.poller.arm(s, false) // fails if the poller is closed
		now |= Out
	}
	if !s.hup && (over && !s.pair || s.ended && s.shut) {
		s.hup = true
		now |= Hup | In
	}
	return now
}

// Read implements Stream.
func (s *epollStream) Read(p []byte) (n int, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false, net.ErrClosed
	}
	n, err = read(s.in, p)
	return n, err == nil && (n == len(p) || s.ended), err
}

// Write implements Stream.
func (s *epollStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	n, full, err := write(s.out, p)
	if full {
		err = s.poller.arm(s, true)
	}
	return n, err
}

// CloseRead implements Stream.
func (s *epollStream) CloseRead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.pair:
		return nil
	}
	s.ended = true
	return shutdown(s.in)
}

// Close implements Stream.
func (s *epollStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.poller.leave(s)
	err := unix.Close(s.in)
	if s.pair {
		err = errors.Join(err, unix.Close(s.out))
	}
	return os.NewSyscallError("close", err)
}

package actors_test

import (
	"io"
	"math"
	"sync"
)

// unbounded is the capacity of a stream that takes everything.
const unbounded = math.MaxInt

// stream is one direction of a link. What was written in one go is read in no more than one, so that a test decides
// which bytes come together.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	capacity int // bytes that were written and not read, at most
	chunks   [][]byte
	size     int
	ended    bool   // nothing more will be written
	refused  error  // what writers get
	cut      error  // what the reader gets, whatever is left to read
	told     func() // called after each change; nil: nobody is
}

func newStream(capacity int) *stream {
	s := &stream{capacity: capacity}
	s.changed.L = &s.mu
	return s
}

// write takes what fits, or waits until all has.
func (s *stream) write(p []byte, wait bool) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.refused != nil {
			return n, s.refused
		}
		if fits := min(len(p)-n, s.capacity-s.size); fits > 0 {
			s.chunks = append(s.chunks, append([]byte(nil), p[n:n+fits]...))
			s.size += fits
			n += fits
			s.changed.Broadcast()
			s.tell()
		}
		if n == len(p) || !wait {
			return n, nil
		}
		s.changed.Wait()
	}
}

// awaitLocked returns when there is something to read, or the reason why there never will be.
func (s *stream) awaitLocked() error {
	for s.size == 0 && !s.ended && s.cut == nil {
		s.changed.Wait()
	}
	if s.cut == nil && s.size == 0 {
		return io.EOF
	}
	return s.cut
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awaitLocked(); err != nil {
		return 0, err
	}
	n := copy(p, s.chunks[0])
	if s.chunks[0] = s.chunks[0][n:]; len(s.chunks[0]) == 0 {
		s.chunks = s.chunks[1:]
	}
	s.size -= n
	if s.size == 0 {
		s.chunks = nil
	}
	s.changed.Broadcast()
	s.tell()
	return n, nil
}

// next returns what was written in one go, or nothing if it would have to wait; more if there is more to come at once.
func (s *stream) next() (chunk []byte, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut != nil:
		return nil, false, s.cut
	case len(s.chunks) > 0:
		chunk, s.chunks = s.chunks[0], s.chunks[1:]
		s.size -= len(chunk)
		s.changed.Broadcast()
		return chunk, len(s.chunks) > 0 || s.ended, nil
	case s.ended:
		return nil, false, io.EOF
	}
	return nil, false, nil
}

// watch has tell called after each change from now on.
func (s *stream) watch(told func()) { s.change(func() { s.told = told }) }

// tell wants mu held.
func (s *stream) tell() {
	if s.told != nil {
		s.told()
	}
}

// drain returns what was written so far.
func (s *stream) drain() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []byte
	for _, c := range s.chunks {
		all = append(all, c...)
	}
	s.chunks, s.size = nil, 0
	s.changed.Broadcast()
	s.tell()
	return all
}

// change runs f while it holds the stream, and wakes its waiters.
func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
	s.tell()
}

// end lets the reader come to the end of what was written.
func (s *stream) end() { s.change(func() { s.ended = true }) }

// refuse has every write fail, one that waits included.
func (s *stream) refuse(err error) { s.change(func() { s.refused = err }) }

// cutOff has every read fail, one that waits included.
func (s *stream) cutOff(err error) { s.change(func() { s.cut = err }) }

func (s *stream) widen(capacity int) { s.change(func() { s.capacity = capacity }) }

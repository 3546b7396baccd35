package actors_test

import (
	"io"
	"math"
	"sync"
)

// unbounded is the capacity of a stream that accepts everything.
const unbounded = math.MaxInt

// stream is one direction of a link. Each write is read separately, so that a test decides which bytes arrive together.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	capacity int // maximum number of bytes that were written and not read
	chunks   [][]byte
	size     int
	ended    bool   // nothing more will be written
	refused  error  // the error of writers
	cut      error  // the error of the reader, also if something is left to read
	told     func() // called after each change; nil: none
}

func newStream(capacity int) *stream {
	s := &stream{capacity: capacity}
	s.changed.L = &s.mu
	return s
}

// write accepts what fits, or waits until everything does.
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

// awaitLocked waits until there is something to read. It returns the reason if there never will be.
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

// next returns the bytes of one write, or nothing if it would have to wait; more reports whether there are more.
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

// watch calls told after each later change.
func (s *stream) watch(told func()) { s.change(func() { s.told = told }) }

// tell must be called with mu locked.
func (s *stream) tell() {
	if s.told != nil {
		s.told()
	}
}

// drain returns what has been written.
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

// change runs f with mu locked, and wakes waiters.
func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
	s.tell()
}

// end ends the stream after what has been written.
func (s *stream) end() { s.change(func() { s.ended = true }) }

// refuse makes all writes fail, including one that waits.
func (s *stream) refuse(err error) { s.change(func() { s.refused = err }) }

// cutOff makes all reads fail, including one that waits.
func (s *stream) cutOff(err error) { s.change(func() { s.cut = err }) }

func (s *stream) widen(capacity int) { s.change(func() { s.capacity = capacity }) }

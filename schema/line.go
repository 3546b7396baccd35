package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/promptware-os/pwos/schema/fault"
)

// Longest lines by default, in bytes, without the line break (MESSAGE 4.3.2, EVENT 4.3.2).
const (
	MaxLine      = 16 << 10
	MaxEventLine = 1 << 20
)

// ErrLineTooLong is the error for a line that is too long. The reader skips the line and continues after it.
var ErrLineTooLong = errors.New("line too long")

// TooLong returns the fault that answers a line of more than limit bytes.
func TooLong(limit int) *fault.Fault {
	size := fmt.Sprintf("%d bytes", limit)
	switch {
	case limit%(1<<20) == 0:
		size = fmt.Sprintf("%dMB", limit>>20)
	case limit%(1<<10) == 0:
		size = fmt.Sprintf("%dKB", limit>>10)
	}
	return fault.WireTooLong.New("Message exceeds maximum line length of %s", size)
}

// Filler is a source that asks for its buffer only when there is something to read, so that a waiting reader holds
// none. Fill reads once, as io.Reader does, into the slice that get returns, and returns it filled; after an error or
// at the end of input the slice may be nil.
type Filler interface {
	Fill(get func() []byte, put func([]byte)) (filled []byte, err error)
}

// Source is a source that never blocks. ReadOnce reads once; more reports that more data is ready. If no data is
// ready, it returns 0, false, nil.
type Source interface {
	ReadOnce(p []byte) (n int, more bool, err error)
}

// chunkSize is larger than the longest canonical line, so that usual lines are not copied.
const chunkSize = 2 * MaxLine

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// LineReader splits a byte stream into lines (PROTOCOL 2). Its memory is bounded by the limit. While it waits for the first
// byte of a line from a Filler, it has no buffer.
type LineReader struct {
	src   io.Reader
	limit int
	get   func() []byte // acquire and giveBack as values
	put   func([]byte)

	chunk      *[chunkSize]byte // backs buf, unless buf has outgrown it
	buf        []byte           // read, not yet returned: buf[start:]
	start      int
	seen       int  // buf[start:seen] contains no '\\n'
	discarding bool // inside a line that is too long
	err        error
}

// NewLineReader returns a reader of lines of at most limit bytes. It calls Fill if src is a Filler, else Read.
func NewLineReader(src io.Reader, limit int) *LineReader {
	r := &LineReader{src: src, limit: limit}
	r.get, r.put = r.acquire, r.giveBack
	return r
}

// Next returns the next line that is not blank, without its line break. The line is valid until the next read. A last line without a
// line break counts. Next returns ErrLineTooLong once for each line that is too long; any other error is the source's, and final.
func (r *LineReader) Next() ([]byte, error) {
	for {
		if line, ok, err := r.TryNext(); ok {
			return line, err
		}
		r.err = r.readMore()
	}
}

// TryNext is Next without reading: ok is false if Next would have to read from the source.
func (r *LineReader) TryNext() (line []byte, ok bool, err error) {
	for {
		i := bytes.IndexByte(r.buf[r.seen:], '\n')
		if i < 0 {
			break
		}
		line = r.buf[r.start : r.seen+i]
		r.start = r.seen + i + 1
		r.seen = r.start
		switch {
		case r.discarding: // the rest of a line that was reported already
			r.discarding = false
		case len(line) > r.limit:
			return nil, true, ErrLineTooLong
		case !blank(line):
			return line, true, nil
		}
	}
	r.seen = len(r.buf)
	switch {
	case r.discarding:
		r.start = r.seen
	case r.seen-r.start > r.limit:
		r.discarding = true
		r.start = r.seen
		return nil, true, ErrLineTooLong
	}
	if r.err == nil {
		return nil, false, nil
	}
	return r.last()
}

// Fill reads once from src, after TryNext returned false. Lines returned before are no longer valid. more reports that
// more data is ready; TryNext returns the error of src.
func (r *LineReader) Fill(src Source) (more bool) {
	if r.err != nil {
		r.Trim()
		return false
	}
	r.makeRoom()
	n, more, err := src.ReadOnce(r.buf[len(r.buf):cap(r.buf)])
	r.buf, r.err = r.buf[:len(r.buf)+n], err
	r.Trim()
	return more && err == nil
}

// Widen raises the limit of the lines to come.
func (r *LineReader) Widen(limit int) { r.limit = max(r.limit, limit) }

// Buffered reports whether the reader has buffered data or an error for TryNext.
func (r *LineReader) Buffered() bool { return r.start < len(r.buf) || r.err != nil }

// Trim returns the buffer to the pool if it has no part of a line. Lines returned before are no longer valid.
func (r *LineReader) Trim() {
	if r.start == len(r.buf) {
		r.release()
	}
}

// last returns the last line, which has no line break, and then the source's error.
func (r *LineReader) last() (line []byte, ok bool, err error) {
	line = r.buf[r.start:]
	r.start = r.seen
	if blank(line) || !errors.Is(r.err, io.EOF) {
		return nil, true, r.err
	}
	return line, true, nil
}

// readMore reads once from the source into the buffer.
func (r *LineReader) readMore() error {
	if r.start == len(r.buf) {
		r.release()
		if f, ok := r.src.(Filler); ok {
			filled, err := f.Fill(r.get, r.put)
			r.buf = filled
			return err
		}
	}
	r.makeRoom()
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	return err
}

// makeRoom makes room in the buffer to read.
func (r *LineReader) makeRoom() {
	if r.start == len(r.buf) {
		r.release()
		r.buf = r.acquire()[:0]
	}
	if r.start > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.start:])]
		r.seen -= r.start
		r.start = 0
	}
	if len(r.buf) == cap(r.buf) {
		grown := make([]byte, len(r.buf), min(2*cap(r.buf), r.limit+chunkSize))
		copy(grown, r.buf)
		r.release()
		r.buf, r.seen = grown, len(grown)
	}
}

func (r *LineReader) acquire() []byte {
	r.chunk = chunks.Get().(*[chunkSize]byte)
	return r.chunk[:]
}

func (r *LineReader) giveBack([]byte) { r.release() }

// release returns the buffer to the pool; lines returned before are no longer valid.
func (r *LineReader) release() {
	if r.chunk != nil {
		chunks.Put(r.chunk)
	}
	r.chunk, r.buf, r.start, r.seen = nil, nil, 0, 0
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

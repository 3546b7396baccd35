package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/promptware-os/pwos/schema/fault"
)

// Longest lines by default, in bytes, the '\n' not counted (MESSAGE 4.3.2, EVENT 4.3.2).
const (
	MaxLine      = 16 << 10
	MaxEventLine = 1 << 20
)

// ErrLineTooLong is the error of an over-long line, which has been skipped: reading goes on after it.
var ErrLineTooLong = errors.New("line too long")

// TooLong is the error that answers a line over limit bytes.
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

// A Filler is a source that asks for its buffer only when there is something to read, so that a reader which waits
// holds none. Fill reads once, as io.Reader does, into the slice that get returns, and hands it back filled; after an
// error or at the end of input the slice may be nil.
type Filler interface {
	Fill(get func() []byte, put func([]byte)) (filled []byte, err error)
}

// A Source is a source that never waits. ReadOnce reads once; more says that there is more to read at once. Where nothing
// is there for now it returns 0, false, nil.
type Source interface {
	ReadOnce(p []byte) (n int, more bool, err error)
}

// chunkSize holds a longest canonical line and then some, so that the usual line is never copied.
const chunkSize = 2 * MaxLine

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// LineReader splits a byte stream into lines (PROTOCOL 2). Its memory is bounded by the limit, whatever the
// stream holds; while it waits for a line's first byte from a Filler it holds no buffer.
type LineReader struct {
	src   io.Reader
	limit int
	get   func() []byte // acquire and giveBack, made once
	put   func([]byte)

	chunk      *[chunkSize]byte // where buf begins, as long as buf did not outgrow it
	buf        []byte           // read, not yet returned: buf[start:]
	start      int
	seen       int  // buf[start:seen] holds no '\n'
	discarding bool // inside an over-long line
	err        error
}

// NewLineReader returns a reader of lines of at most limit bytes. Where src is a Filler it is filled, else read.
func NewLineReader(src io.Reader, limit int) *LineReader {
	r := &LineReader{src: src, limit: limit}
	r.get, r.put = r.acquire, r.giveBack
	return r
}

// Next returns the next line that is not blank, without its '\n'. The line is valid until something is read again. A last line
// without '\n' counts. ErrLineTooLong reports an over-long line, once; every other error is the source's and final.
func (r *LineReader) Next() ([]byte, error) {
	for {
		if line, ok, err := r.TryNext(); ok {
			return line, err
		}
		r.err = r.fill()
	}
}

// TryNext is Next for what has been read already: ok is false where Next would have to read from the source.
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
		case r.discarding: // the rest of a line that was reported before
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

// Fill reads once from src, behind what is left of a line; TryNext must have returned false. Lines that were returned before
// are no longer valid. More says that there is more to read at once; the error of src is TryNext's to return.
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

// Buffered reports whether there is something to return: TryNext says whether it is a line.
func (r *LineReader) Buffered() bool { return r.start < len(r.buf) || r.err != nil }

// Trim gives the buffer back where no part of a line is in it. Lines that were returned before are no longer valid.
func (r *LineReader) Trim() {
	if r.start == len(r.buf) {
		r.release()
	}
}

// last returns what stands before the end of input without a '\n', then the source's error.
func (r *LineReader) last() (line []byte, ok bool, err error) {
	line = r.buf[r.start:]
	r.start = r.seen
	if blank(line) || !errors.Is(r.err, io.EOF) {
		return nil, true, r.err
	}
	return line, true, nil
}

// fill reads once more from the source, after what is left in the buffer.
func (r *LineReader) fill() error {
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

// makeRoom makes room to read, behind what is left in the buffer.
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

// release gives the buffer back; nothing that Next returned before may be used any more.
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

package journal

import (
	"bytes"
	"errors"
	"io"
)

// A reader begins with firstRead bytes, enough for the first line or two, and goes up to readSize once it reads on.
const (
	firstRead = 4 << 10
	readSize  = 256 << 10
)

// errLongLine says that no line ends within MaxLine bytes.
var errLongLine = errors.New("line is longer than an entry may be")

// lineReader splits a file into lines in memory that grows with the longest line only. Its end is not final: next may be
// called again after io.EOF when the file has grown.
type lineReader struct {
	f    File
	buf  []byte
	r, w int   // buf[r:w] is read and not yet handed out
	off  int64 // offset in the file of buf[r]
	line int64 // lines handed out
	full bool  // the last read filled all the space there was
}

func newLineReader(f File, off int64) *lineReader { return &lineReader{f: f, off: off} }

// next returns the next line without its '\n'; it is valid until the call after. It returns io.EOF where no whole line
// follows; rest then tells how much of one. With errLongLine, after which there is no next, it returns the first MaxLine
// bytes and some more.
func (lr *lineReader) next() ([]byte, error) {
	for scanned := 0; ; {
		if n := bytes.IndexByte(lr.buf[lr.r+scanned:lr.w], '\n'); n >= 0 {
			line := lr.buf[lr.r : lr.r+scanned+n]
			lr.r += len(line) + 1
			lr.off += int64(len(line)) + 1
			lr.line++
			return line, nil
		}
		scanned = lr.w - lr.r
		if scanned > MaxLine {
			lr.line++
			return lr.buf[lr.r:lr.w], errLongLine
		}
		if err := lr.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, at least one byte, after what is there.
func (lr *lineReader) fill() error {
	if lr.r > 0 {
		lr.w = copy(lr.buf, lr.buf[lr.r:lr.w])
		lr.r = 0
	}
	if lr.w == len(lr.buf) || lr.full && len(lr.buf) < readSize {
		lr.buf = append(lr.buf, make([]byte, max(firstRead, 3*len(lr.buf)))...)
	}
	n, err := lr.f.ReadAt(lr.buf[lr.w:], lr.off+int64(lr.w))
	lr.w += n
	lr.full = lr.w == len(lr.buf)
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// rest is the number of bytes after the last line end, once next has returned io.EOF.
func (lr *lineReader) rest() int64 { return int64(lr.w - lr.r) }

// peek is what rest counts; it is valid until the next call of next.
func (lr *lineReader) peek() []byte { return lr.buf[lr.r:lr.w] }

// discard forgets what was read ahead: the next line is read from the file anew.
func (lr *lineReader) discard() { lr.w = lr.r }

// lastLineStart finds where the last line of buf begins; ok tells whether it is known from buf alone. whole says that buf
// is the file from its beginning. Where buf does not end with a line end, the last line is empty.
func lastLineStart(buf []byte, whole bool) (start int, ok bool) {
	n := len(buf)
	if n == 0 || buf[n-1] != '\n' {
		return n, true
	}
	start = bytes.LastIndexByte(buf[:n-1], '\n') + 1
	return start, start > 0 || whole
}

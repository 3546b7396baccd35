package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/promptware-os/pwos/internal/outlog"
	"github.com/promptware-os/pwos/internal/regular"
)

// Bounds of a logger.
const (
	// firstBuffer is what an agent that writes little costs; a pipe holds the rest. A flood is read with fullBuffer.
	firstBuffer = 4 << 10
	fullBuffer  = 64 << 10
	// maxCarry is the longest incomplete line that a rotation moves to the new file instead of cutting it.
	maxCarry = 64 << 10
)

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// logger copies a program's standard error to its caller, if it has one, and to files of bounded total size. The program waits for
// its caller and never for a slow disk: what cannot be written to the files is dropped by whole lines, and the log says how much.
// What a rotation drops is told by the header of the next file (outlog.Header).
type logger struct {
	options LogOptions
	dropped atomic.Int64

	mu    sync.Mutex // guards the rest: two goroutines write
	file  *os.File   // nil: no log, or it cannot be written now
	start int64      // position in the log of the first byte of the file
	head  int64      // length of the file's header
	size  int64      // length of the file
	whole int64      // its length up to the end of its last complete line

	missing int64 // bytes dropped since the last write
	why     error // why they were dropped
	cut     bool  // the rest of the present line is dropped too
}

// openLog opens the log for appending, or returns one that discards. If the disk is full, the program starts without a log.
func openLog(o LogOptions) (*logger, error) {
	l := &logger{options: o}
	if o.Path == "" {
		return l, nil
	}
	if err := l.open(); err != nil && !full(err) {
		return l, err
	}
	return l, nil
}

// open opens the current file. It completes a partial last line first. A new file begins where the last one ended.
func (l *logger) open() error {
	file, info, err := regular.Open(l.options.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("open agent log: %w", err)
	}
	l.file, l.head, l.size, l.whole = file, 0, info.Size(), info.Size()
	if l.size == 0 {
		return nil
	}
	if l.start, l.head, err = outlog.Header(file); err != nil {
		l.close()
		return fmt.Errorf("open agent log: %w", err)
	}
	last := []byte{'\n'}
	if _, err := file.ReadAt(last, l.size-1); err == nil && last[0] != '\n' {
		l.whole = l.head // unknown, and only compared with size
		l.endLine()
	}
	return nil
}

// drain copies until all other ends are closed, and shows what it has copied to see.
func (l *logger) drain(from io.Reader, caller *outlet, see func([]byte)) {
	buffer := make([]byte, firstBuffer)
	for {
		n, err := from.Read(buffer)
		caller.write(buffer[:n])
		l.mu.Lock()
		l.write(buffer[:n])
		l.mu.Unlock()
		see(buffer[:n])
		if err != nil {
			break
		}
		if n == firstBuffer {
			buffer = make([]byte, fullBuffer)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLine()
	if l.missing > 0 {
		l.tellMissing(nil)
	}
	l.close()
}

// note appends a line of the host, also after the program's end.
func (l *logger) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		defer l.close()
	}
	l.endLine()
	l.write([]byte(line + "\n"))
}

// close closes the current file.
func (l *logger) close() {
	if l.file != nil {
		closeFile(l.file)
		l.file = nil
	}
}

// write appends, and starts a new file at the size limit: between two lines, unless a line is longer than maxCarry.
func (l *logger) write(b []byte) {
	if l.options.Path == "" {
		return
	}
	if l.cut {
		rest := bytes.IndexByte(b, '\n') + 1
		if rest == 0 {
			rest = len(b)
		}
		l.drop(b[:rest], l.why)
		b = b[rest:]
	}
	if l.missing > 0 && len(b) > 0 {
		l.tellMissing(b)
		return
	}
	l.append(b)
}

// append is write when nothing is missing before b.
func (l *logger) append(b []byte) {
	for len(b) > 0 {
		room := max(l.options.MaxBytes-l.size, 0)
		if l.size == 0 { // it takes a byte, however small the bound
			room = max(room-int64(len(outlog.HeaderFor(l.start, b))), 1)
		}
		n := int64(len(b))
		if n > room {
			n = int64(bytes.LastIndexByte(b[:room], '\n') + 1)
			if n == 0 && (l.whole == l.head || l.size-l.whole > l.carry()) {
				n = room
			}
		}
		err := l.put(b[:n])
		if b = b[n:]; err == nil && len(b) > 0 {
			err = l.rotate()
		}
		if err != nil {
			l.drop(b, err)
			return
		}
	}
}

// put appends to the current file. If it fails, it drops b with the line that b continues.
func (l *logger) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			l.drop(b, err)
			return err
		}
	}
	if header := outlog.HeaderFor(l.start, b); l.size == 0 && header != "" {
		if _, err := l.file.WriteString(header); err != nil {
			_ = l.file.Truncate(0) // the next write tries again
			l.drop(b, err)
			return err
		}
		l.head = int64(len(header))
		l.size, l.whole = l.head, l.head
	}
	n, err := l.file.Write(b)
	if err != nil {
		before := l.size - l.whole
		if l.file.Truncate(l.whole) == nil {
			l.size = l.whole
			l.lose(before, err)
			n = 0
		}
		l.size += int64(n)
		l.drop(b[n:], err)
		return err
	}
	l.size += int64(n)
	if end := bytes.LastIndexByte(b, '\n'); end >= 0 {
		l.whole = l.size - int64(n-end-1)
	}
	return nil
}

// drop counts bytes that are not written, and with them the rest of the line that they end in.
func (l *logger) drop(b []byte, why error) {
	if len(b) > 0 {
		l.lose(int64(len(b)), why)
		l.cut = b[len(b)-1] != '\n'
	}
}

func (l *logger) lose(n int64, why error) {
	l.missing, l.why = l.missing+n, why
	l.dropped.Add(n)
}

// tellMissing writes how much is missing here, and b after it. If there is no room for both, it writes neither: on a full disk a short
// line may still fit where the output does not.
func (l *logger) tellMissing(b []byte) {
	n, why, dropped := l.missing, l.why, l.dropped.Load()
	if number := syscall.Errno(0); errors.As(why, &number) { // its text has no path
		why = number
	}
	line := outlog.Missing(n, why)
	if l.size > l.whole { // a cut line could not be taken back
		line = append([]byte{'\n'}, line...)
	}
	before := l.start - l.head + l.whole
	l.missing, l.cut = 0, false
	l.append(append(line, b...))
	if l.missing > 0 && l.start-l.head+l.whole == before { // nothing was written
		l.missing = n + int64(len(b))
		l.dropped.Store(dropped + int64(len(b)))
	}
}

// endLine ends an incomplete line.
func (l *logger) endLine() {
	if l.file != nil && l.size > l.whole && !l.cut {
		_ = l.put([]byte{'\n'}) // counted as dropped if it fails
	}
}

// carry returns the longest incomplete line that is not cut between two files.
func (l *logger) carry() int64 { return min(maxCarry, l.options.MaxBytes/2) }

// rotate renames every file to the next older one and starts a new one, with the incomplete last line of the old one.
func (l *logger) rotate() error {
	var carried []byte
	if n := l.size - l.whole; n > 0 && n <= l.carry() && l.whole > l.head {
		carried = make([]byte, n)
		if _, err := l.file.ReadAt(carried, l.whole); err != nil {
			return err
		}
		if err := l.file.Truncate(l.whole); err != nil {
			return err
		}
		l.size = l.whole
	}
	path := l.options.Path
	l.close()
	for i := l.options.Files - 1; i > 0; i-- {
		older, newer := fmt.Sprintf("%s.%d", path, i), path
		if i > 1 {
			newer = fmt.Sprintf("%s.%d", path, i-1)
		}
		if err := os.Rename(newer, older); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // a file must not grow without bound
		}
	}
	if l.options.Files == 1 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	l.start += l.size - l.head
	l.head, l.size, l.whole = 0, 0, 0
	return l.put(carried)
}

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/promptware-os/pwos/internal/regular"
)

// logger writes a program's standard error to files of bounded total size. The program never waits for a slow disk: what
// cannot be written is counted and dropped.
type logger struct {
	options LogOptions
	file    *os.File // nil without a log file
	size    int64
	mid     bool // the last byte written was not the end of a line
	dropped atomic.Int64

	mu sync.Mutex // guards everything except options and dropped: two goroutines write
}

// openLog opens the log for appending, or returns one that discards.
func openLog(o LogOptions) (*logger, error) {
	l := &logger{options: o}
	if o.Path == "" {
		return l, nil
	}
	return l, l.open()
}

// open opens the current file. It completes a partial last line first.
func (l *logger) open() error {
	file, info, err := regular.Open(l.options.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("open agent log: %w", err)
	}
	l.file, l.size, l.mid = file, info.Size(), false
	last := []byte{'\n'}
	if _, err := file.ReadAt(last, l.size-1); l.size > 0 && err == nil && last[0] != '\n' {
		l.mid = true
		l.endLine()
	}
	return nil
}

// drain copies until all other ends are closed.
func (l *logger) drain(from io.Reader) {
	buffer := make([]byte, 4<<10) // one per agent; a pipe holds the rest
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		l.write(buffer[:n])
		l.mu.Unlock()
		if err != nil {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLine()
	l.close()
}

// note appends a line of the host, also after the program's end.
func (l *logger) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && l.options.Path != "" {
		if l.open() != nil {
			l.dropped.Add(int64(len(line)))
			return
		}
		defer l.close()
	}
	l.endLine()
	l.write([]byte(line + "\n"))
}

// close closes the current file. Lines that were not written have been counted.
func (l *logger) close() {
	if l.file != nil {
		closeFile(l.file)
		l.file = nil
	}
}

// write appends, and starts a new file at the size limit: between two lines if b has a line end, otherwise within one.
func (l *logger) write(b []byte) {
	for len(b) > 0 && l.options.Path != "" {
		room := max(l.options.MaxBytes-l.size, 0)
		n := int64(len(b))
		if n > room {
			n = int64(bytes.LastIndexByte(b[:room], '\n') + 1)
			if n == 0 && l.size == 0 {
				n = room
			}
		}
		l.put(b[:n])
		b = b[n:]
		if len(b) > 0 && !l.rotate() {
			l.dropped.Add(int64(len(b)))
			return
		}
	}
}

// put appends to the current file.
func (l *logger) put(b []byte) {
	if l.file == nil || len(b) == 0 {
		l.dropped.Add(int64(len(b)))
		return
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	if n > 0 {
		l.mid = b[n-1] != '\n'
	}
	if err != nil {
		l.dropped.Add(int64(len(b) - n))
	}
}

// endLine ends an incomplete line.
func (l *logger) endLine() {
	if l.mid {
		l.put([]byte{'\n'})
	}
}

// rotate renames every file to the next older one and starts a new one. It reports whether a file is open for writing.
func (l *logger) rotate() bool {
	path := l.options.Path
	l.close()
	for i := l.options.Files - 1; i > 0; i-- {
		older, newer := fmt.Sprintf("%s.%d", path, i), path
		if i > 1 {
			newer = fmt.Sprintf("%s.%d", path, i-1)
		}
		if err := os.Rename(newer, older); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false // a file must not grow without bound
		}
	}
	if l.options.Files == 1 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return l.open() == nil
}

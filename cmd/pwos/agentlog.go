package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/outlog"
	"github.com/promptware-os/pwos/view"
)

// agentLog follows a program's standard error in the log files that the kernel writes.
type agentLog struct {
	path string
	file *os.File // nil: no file is open
	at   int64    // position in the log of what is read next
	out  io.Writer

	missed func(bytes int64) // is told of output that is gone from the log; nil: nobody is
}

// newAgentLog returns a follower of a process's log that writes to out. It escapes control characters if out is a terminal.
func newAgentLog(pid int64, out *os.File) (*agentLog, error) {
	path, err := cli.AgentLogFile(pid)
	if err != nil {
		return nil, err
	}
	l := &agentLog{path: path, out: out}
	if term.IsTerminal(int(out.Fd())) {
		l.out = &view.PlainWriter{To: out}
	}
	return l, nil
}

// open opens the file at path, after its header, and returns the position in the log where it begins. It reports whether the file
// exists.
func (l *agentLog) open(path string) (start int64, found bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("open log: %w", err)
	}
	start, length, err := outlog.Header(file)
	if err == nil {
		_, err = file.Seek(length, io.SeekStart)
	}
	if err != nil {
		return 0, false, errors.Join(fmt.Errorf("open log: %w", err), file.Close())
	}
	l.file = file
	return start, true, nil
}

// next opens the file that continues the log: the current one, or the older one if the kernel has rotated the log twice. It reports
// whether there is one.
func (l *agentLog) next() (bool, error) {
	start, found, err := l.open(l.path)
	if err != nil || !found {
		return false, err
	}
	if start > l.at {
		if err := l.close(); err != nil {
			return false, err
		}
		older, found, err := l.open(l.path + ".1")
		if err != nil {
			return false, err
		}
		if !found {
			return l.next()
		}
		start = older
	}
	l.goOn(start)
	return true, nil
}

// oldest opens the older file, if there is one.
func (l *agentLog) oldest() error {
	start, found, err := l.open(l.path + ".1")
	if found {
		l.goOn(start)
	}
	return err
}

// goOn continues at a position in the log.
func (l *agentLog) goOn(start int64) {
	if gone := start - l.at; gone > 0 && l.missed != nil {
		l.missed(gone)
	}
	l.at = start
}

// copy writes the output since the last call. If the kernel has rotated the log, it continues with the next file.
func (l *agentLog) copy() error {
	if l.file == nil {
		if found, err := l.next(); err != nil || !found {
			return err
		}
	}
	for {
		// This check precedes the read: after the rotation nothing is appended to the old file.
		moved, err := l.moved()
		if err != nil {
			return err
		}
		n, err := io.Copy(l.out, l.file)
		l.at += n
		if err != nil {
			return fmt.Errorf("show log: %w", err)
		}
		if !moved {
			return nil
		}
		if err := l.close(); err != nil {
			return err
		}
		if found, err := l.next(); err != nil || !found {
			return err
		}
	}
}

// copyLast copies only the last lines of the log; nil means all. An incomplete line counts as one.
func (l *agentLog) copyLast(lines *int64) error {
	if lines == nil {
		return l.copy()
	}
	out := l.out
	var all bytes.Buffer // at most two mebibytes
	l.out = &all
	err := l.copy()
	l.out = out
	if err != nil {
		return err
	}
	if _, err := out.Write(lastLines(all.Bytes(), *lines)); err != nil {
		return fmt.Errorf("show log: %w", err)
	}
	return nil
}

// lastLines returns the last lines of text.
func lastLines(text []byte, lines int64) []byte {
	begin := len(text)
	for ; lines > 0 && begin > 0; lines-- {
		begin = bytes.LastIndexByte(text[:begin-1], '\n') + 1
	}
	return text[begin:]
}

// moved reports whether the open file is a rotated one. If the kernel has taken back a cut line, it goes back too.
func (l *agentLog) moved() (bool, error) {
	own, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	here, err := l.file.Seek(0, io.SeekCurrent)
	if back := here - own.Size(); err == nil && back > 0 {
		_, err = l.file.Seek(-back, io.SeekCurrent)
		l.at -= back
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	current, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) { // during the rotation
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	return !os.SameFile(own, current), nil
}

// wait shows the log as it grows, until an event is signalled, the pause is over, or ctx ends.
func (l *agentLog) wait(ctx context.Context, pause time.Duration, news <-chan struct{}) error {
	const glance = 25 * time.Millisecond
	end := time.NewTimer(pause)
	defer end.Stop()
	every := time.NewTicker(glance)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end.C:
			return nil
		case <-news:
			return nil
		case <-every.C:
			if err := l.copy(); err != nil {
				return err
			}
		}
	}
}

// close closes the open file, if any.
func (l *agentLog) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

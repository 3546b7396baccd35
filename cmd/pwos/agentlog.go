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
)

// agentLog follows what a program wrote to standard error, in the files that the kernel keeps of it.
type agentLog struct {
	path string
	file *os.File // nil: nothing was opened yet
	out  io.Writer
}

// newAgentLog is the log of a process, to be written to out from its beginning as far as it is kept.
func newAgentLog(pid int64, out *os.File) (*agentLog, error) {
	path, err := agentLogFile(pid)
	if err != nil {
		return nil, err
	}
	l := &agentLog{path: path, out: out}
	if term.IsTerminal(int(out.Fd())) {
		l.out = &plainWriter{to: out}
	}
	return l, nil
}

// open opens the file at path, and reports whether there is one.
func (l *agentLog) open(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open log: %w", err)
	}
	l.file = file
	return true, nil
}

// copy writes what has come since the last time. Where the kernel has begun a new file meanwhile, it goes on with that.
func (l *agentLog) copy() error {
	if l.file == nil {
		if found, err := l.open(l.path); err != nil || !found {
			return err
		}
	}
	for {
		// Asked before the file is read: once another has its name, nothing is added to it.
		moved, err := l.moved()
		if err != nil {
			return err
		}
		if _, err := io.Copy(l.out, l.file); err != nil {
			return fmt.Errorf("show log: %w", err)
		}
		if !moved {
			return nil
		}
		if err := l.close(); err != nil {
			return err
		}
		if found, err := l.open(l.path); err != nil || !found {
			return err
		}
	}
}

// copyLast is copy, of the last lines alone; nil is all of them. A line that has not ended yet is one.
func (l *agentLog) copyLast(lines *int64) error {
	if lines == nil {
		return l.copy()
	}
	out := l.out
	var all bytes.Buffer // a mebibyte or two
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

// lastLines is the end of text from its last lines on, so many.
func lastLines(text []byte, lines int64) []byte {
	begin := len(text)
	for ; lines > 0 && begin > 0; lines-- {
		begin = bytes.LastIndexByte(text[:begin-1], '\n') + 1
	}
	return text[begin:]
}

// moved reports whether the open file is not the current one any more.
func (l *agentLog) moved() (bool, error) {
	own, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	current, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) { // between two names
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	return !os.SameFile(own, current), nil
}

// wait shows the log as it comes until there is news, the pause is over, or ctx ends.
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

// close lets go of the open file, which was only read.
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

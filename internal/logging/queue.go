package logging

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	queued   = 1024        // most lines that wait to be written
	patience = time.Second // how long shutdown waits for the reader
)

// Queue is a writer of log lines that never blocks: a goroutine writes them. A line that finds the queue full, because the
// log is not read, is dropped and counted.
type Queue struct {
	to      io.Writer
	log     *slog.Logger // writes to that as well: says how many were dropped
	lines   chan []byte
	dropped atomic.Int64
	ending  chan struct{}
	ended   chan struct{}
}

// NewQueue returns a queue of what leads to a writer, with a logger that writes to it. Close ends its goroutine.
func NewQueue(to io.Writer, f Form) (*Queue, *slog.Logger) {
	q := &Queue{to: to, log: New(to, f), lines: make(chan []byte, queued), ending: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q, f.logger(q, terminal(to))
}

// Write implements io.Writer. It takes a line at a time.
func (q *Queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *Queue) run() {
	defer close(q.ended)
	for {
		select {
		case line := <-q.lines:
			q.writeLine(line)
			continue
		default:
		}
		if n := q.dropped.Swap(0); n > 0 {
			q.log.Warn("lines of the log were dropped: nobody read it", "lines", n)
			continue
		}
		select {
		case line := <-q.lines:
			q.writeLine(line)
		case <-q.ending:
			if len(q.lines) == 0 {
				return
			}
		}
	}
}

func (q *Queue) writeLine(line []byte) {
	_, _ = q.to.Write(line) // there is nowhere to report that the log cannot be written
}

// Close writes what is queued, as long as the log is read. Later lines are lost.
func (q *Queue) Close() {
	close(q.ending)
	select {
	case <-q.ended:
	case <-time.After(patience):
	}
}

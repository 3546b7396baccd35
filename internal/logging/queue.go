package logging

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	queued   = 1024        // maximum number of lines that wait to be written
	patience = time.Second // how long Close waits for the reader
)

// Queue is a writer of log lines that never blocks: a goroutine writes them. If the log is not read, lines that do not fit
// the queue are dropped and counted.
type Queue struct {
	to      io.Writer
	log     *slog.Logger // writes to the same writer; reports how many lines were dropped
	lines   chan []byte
	dropped atomic.Int64
	ending  chan struct{}
	ended   chan struct{}
}

// NewQueue returns a queue in front of a writer, and a logger that writes to the queue. Close ends its goroutine.
func NewQueue(to io.Writer, f Form) (*Queue, *slog.Logger) {
	q := &Queue{to: to, log: New(to, f), lines: make(chan []byte, queued), ending: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q, f.logger(q, terminal(to))
}

// Write implements io.Writer. Each call writes a line.
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
			q.log.Warn("lines of the log were dropped, because it was not read", "lines", n)
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
	_, _ = q.to.Write(line) // a failure of the log cannot be reported anywhere
}

// Close writes the queued lines, while the log is read. Later lines are lost.
func (q *Queue) Close() {
	close(q.ending)
	select {
	case <-q.ended:
	case <-time.After(patience):
	}
}

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// lines wraps the streams of a host. The MCP server would end at a line that is not JSON, and drop calls in flight when its
// input ends. lines answers and skips such a line, and delays the end of the input until all requests are answered.
type lines struct {
	ctx      context.Context
	patience time.Duration // how long the end of the input waits for answers
	in       *bufio.Reader
	rest     []byte // the part of the current line that Read has not returned yet

	mu      sync.Mutex
	out     io.Writer
	asked   int           // number of requests without an answer
	idle    chan struct{} // closed when the input has ended and asked is 0
	atEnd   bool
	partial []byte // the beginning of a line that is being written
}

const longestLine = 16 << 20

func newLines(ctx context.Context, in io.Reader, out io.Writer, patience time.Duration) *lines {
	return &lines{ctx: ctx, patience: patience, in: bufio.NewReader(in), out: out, idle: make(chan struct{})}
}

// Read reads the lines that are JSON. It answers other lines with an error.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		if err != nil {
			return 0, l.end(err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !schema.Valid(line) {
			if err := l.answer(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is not one strict JSON value"}}`); err != nil {
				return 0, err
			}
			continue
		}
		if id, method := parts(line); id && method {
			l.mu.Lock()
			l.asked++
			l.mu.Unlock()
		}
		l.rest = append(line, '\n')
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line. If the line is too long, next returns a text that is not JSON. A last line without a line break counts only if it
// is complete JSON.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) <= longestLine {
			line = append(line, part...)
		} else {
			line = []byte("too long") // not JSON
		}
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, io.EOF) && schema.Valid(line):
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// end waits until all requests are answered, ctx ends or patience is over. It returns err.
func (l *lines) end(err error) error {
	l.mu.Lock()
	l.atEnd = true
	wait := l.asked > 0
	l.mu.Unlock()
	if wait {
		select {
		case <-l.idle:
		case <-l.ctx.Done():
		case <-time.After(l.patience):
		}
	}
	return err
}

func (l *lines) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.atEnd
}

// Write writes the server's lines, and counts its answers.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.out.Write(p)
	l.partial = append(l.partial, p[:n]...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte{'\n'})
		if !ok {
			return n, err
		}
		l.partial = rest
		if id, method := parts(line); id && !method && l.asked > 0 {
			l.asked--
		}
		if l.atEnd && l.asked == 0 {
			select {
			case <-l.idle:
			default:
				close(l.idle)
			}
		}
	}
}

// answer writes a line that does not come from the server.
func (l *lines) answer(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, line+"\n")
	return err
}

// Close leaves the streams open: their owner closes them.
func (l *lines) Close() error { return nil }

// parts reports whether a JSON line is an object with an id that is not null, and whether it has a method.
func parts(line []byte) (id, method bool) {
	members, err := schema.TypeOf[map[string]schema.Value]().Decode(line)
	if err != nil {
		return false, false
	}
	object := *members.(*map[string]schema.Value)
	return object["id"] != nil && string(object["id"]) != "null", object["method"] != nil
}

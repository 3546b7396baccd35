package schema_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// source is a reader that returns a text in pieces of the given sizes, in turn, and then an error. A size of 0 is a read without data.
type source struct {
	rest  []byte
	sizes []int
	end   error
	early bool // the error is returned with the last bytes
	reads int
}

func (s *source) Read(p []byte) (int, error) {
	s.reads++
	if len(s.rest) == 0 {
		return 0, s.end
	}
	n := min(len(p), len(s.rest))
	if len(s.sizes) > 0 {
		n = min(n, s.sizes[s.reads%len(s.sizes)])
	}
	copy(p, s.rest[:n])
	s.rest = s.rest[n:]
	if s.early && len(s.rest) == 0 {
		return n, s.end
	}
	return n, nil
}

// filler is the source as a Filler: it gets the buffer only when there is data, and sometimes returns it unused and gets it
// again.
type filler struct{ source }

var _ schema.Filler = (*filler)(nil)

func (f *filler) Fill(get func() []byte, put func([]byte)) ([]byte, error) {
	if len(f.rest) == 0 && !f.early {
		f.reads++
		return nil, f.end
	}
	buf := get()
	if f.reads%3 == 0 {
		put(buf)
		buf = get()
	}
	n, err := f.Read(buf)
	return buf[:n], err
}

// once is the source as a Source. It sometimes reports wrongly that more data is ready.
type once struct {
	source
	last error // error of the last read
}

var _ schema.Source = (*once)(nil)

func (o *once) ReadOnce(p []byte) (n int, more bool, err error) {
	n, err = o.Read(p)
	o.last = err
	return n, o.reads%2 == 0 || n == len(p), err
}

// sources returns the three kinds of readers of a text.
func sources(text []byte, sizes []int, end error, early bool) map[string]func() (io.Reader, *source) {
	return map[string]func() (io.Reader, *source){
		"reader": func() (io.Reader, *source) {
			s := &source{rest: text, sizes: sizes, end: end, early: early}
			return s, s
		},
		"filler": func() (io.Reader, *source) {
			f := &filler{source{rest: text, sizes: sizes, end: end, early: early}}
			return f, &f.source
		},
		"once": func() (io.Reader, *source) {
			o := &once{source: source{rest: text, sizes: sizes, end: end, early: early}}
			return o, &o.source
		},
	}
}

// outcome is a result of Next: a line, or ErrLineTooLong if line is nil.
type outcome struct{ line []byte }

// split is the model of LineReader: it splits the whole text.
func split(text []byte, limit int, end error) []outcome {
	var want []outcome
	pieces := bytes.Split(text, []byte{'\n'})
	for i, line := range pieces {
		last := i == len(pieces)-1
		switch {
		case len(line) > limit:
			want = append(want, outcome{})
		case len(bytes.Trim(line, " \t\r")) == 0:
		case last && end != io.EOF: // the error drops an incomplete line
		default:
			want = append(want, outcome{line})
		}
	}
	return want
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkLines reads to the end and compares the results with want. If try is set, it calls TryNext first, which must not read.
// It reads a Source with Fill.
func checkLines(t fataler, src io.Reader, counter *source, limit int, want []outcome, try bool) {
	t.Helper()
	r := schema.NewLineReader(src, limit)
	next := func() ([]byte, error) {
		if src, ok := src.(*once); ok {
			return fillAndNext(t, r, src)
		}
		if !try {
			return r.Next()
		}
		before := counter.reads
		line, ok, err := r.TryNext()
		if counter.reads != before {
			t.Fatalf("TryNext read")
		}
		if !ok {
			if line != nil || err != nil {
				t.Fatalf("TryNext reported no line, and returned %q, %v", line, err)
			}
			return r.Next()
		}
		return line, err
	}
	for i, o := range want {
		line, err := next()
		switch {
		case o.line == nil && (err != schema.ErrLineTooLong || line != nil):
			t.Fatalf("outcome %d: %.60q, %v, want a line over %d bytes reported", i, line, err, limit)
		case o.line != nil && (err != nil || !bytes.Equal(line, o.line)):
			t.Fatalf("outcome %d: %.60q (%d bytes), %v, want %.60q (%d bytes)", i, line, len(line), err, o.line, len(o.line))
		}
	}
	for range 3 { // the end is final
		line, err := next()
		if line != nil || !errors.Is(err, counter.end) {
			t.Fatalf("after %d outcomes: %.60q, %v, want %v", len(want), line, err, counter.end)
		}
	}
}

// fillAndNext returns the next line, and calls Fill until there is one.
func fillAndNext(t fataler, r *schema.LineReader, src *once) ([]byte, error) {
	t.Helper()
	for {
		before := src.reads
		if line, ok, err := r.TryNext(); ok {
			if err != nil && err == src.last && (r.Fill(src) || src.reads != before) {
				t.Fatalf("Fill read after the end")
			}
			return line, err
		}
		if src.reads != before {
			t.Fatalf("TryNext read")
		}
		if more := r.Fill(src); src.reads != before+1 || more && src.last != nil {
			t.Fatalf("Fill read %d times, more %v, %v", src.reads-before, more, src.last)
		}
	}
}

func checkEachSource(t *testing.T, text string, limit int, want []outcome) {
	t.Helper()
	for _, sizes := range [][]int{nil, {1}, {2}, {3, 0, 1}, {7}, {0, 0, 64}, {4096}} {
		for _, early := range []bool{false, true} {
			for kind, open := range sources([]byte(text), sizes, io.EOF, early) {
				for _, try := range []bool{false, true} {
					src, counter := open()
					checkLines(named{t, kind}, src, counter, limit, want, try)
				}
			}
		}
	}
}

// named names the source in a failure.
type named struct {
	*testing.T
	kind string
}

func (n named) Fatalf(format string, args ...any) {
	n.Helper()
	n.T.Fatalf(n.kind+": "+format, args...)
}

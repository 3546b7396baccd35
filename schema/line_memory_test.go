package schema_test

import (
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// endless is a reader that returns a number of bytes without a line break, and then a line. It measures the heap half way.
type endless struct {
	left, half int
	tail       string
	measure    func()
	most       int // the longest buffer of a read
}

func (e *endless) Read(p []byte) (int, error) {
	e.most = max(e.most, len(p))
	if e.left > 0 {
		if e.left < e.half {
			e.half = 0
			e.measure()
		}
		n := min(len(p), e.left)
		e.left -= n
		clear(p[:n])
		return n, nil
	}
	if e.tail == "" {
		return 0, io.EOF
	}
	n := copy(p, e.tail)
	e.tail = e.tail[n:]
	return n, nil
}

type endlessFiller struct{ endless }

func (e *endlessFiller) Fill(get func() []byte, _ func([]byte)) ([]byte, error) {
	buf := get()
	n, err := e.Read(buf)
	return buf[:n], err
}

// heap returns the bytes in use, after all garbage is collected.
func heap() int64 {
	runtime.GC()
	runtime.GC() // a pool keeps its content for one more cycle
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLineReaderSkipsInConstantMemory checks that 32 MiB without a line break are one error and need at most one buffer, and that the
// next line is read (MESSAGE 8.3 #1, MESSAGE C #16, EVENT 8.3 #1, PROTOCOL 2). It is not parallel because it measures the heap.
func TestLineReaderSkipsInConstantMemory(t *testing.T) {
	const size, chunk = 32 << 20, 2 * schema.MaxLine
	for _, limit := range []int{schema.MaxLine, schema.MaxEventLine} {
		var held int64
		before := heap()
		text := endless{left: size, half: size / 2, tail: "\nnext\n", measure: func() { held = heap() - before }}
		plain, fill := text, &endlessFiller{text}
		for src, most := range map[io.Reader]*int{&plain: &plain.most, fill: &fill.most} {
			r := schema.NewLineReader(src, limit)
			if _, err := r.Next(); err != schema.ErrLineTooLong {
				t.Fatalf("limit %d: %v", limit, err)
			}
			line, err := r.Next()
			if string(line) != "next" || err != nil {
				t.Fatalf("limit %d: %q, %v after the long line", limit, line, err)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Fatalf("limit %d: %v at the end", limit, err)
			}
			if *most > limit+chunk {
				t.Errorf("limit %d: a buffer of %d bytes", limit, *most)
			}
			if held == 0 || held > chunk+64<<10 { // the grown buffer was released
				t.Errorf("limit %d: %d bytes are held half way", limit, held)
			}
			held = 0
		}
	}
}

// waiter is a Filler that returns one line and then waits, like a socket.
type waiter struct {
	line    string
	waiting *sync.WaitGroup
	end     chan struct{}
}

func (w *waiter) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (w *waiter) Fill(get func() []byte, put func([]byte)) ([]byte, error) {
	if w.line == "" {
		put(get()) // no data is ready
		w.waiting.Done()
		<-w.end
		return nil, io.EOF
	}
	buf := get()
	n := copy(buf, w.line)
	w.line = ""
	return buf[:n], nil
}

// TestLineReaderHoldsNothingWhileItWaits checks that a reader that waits for a Filler has no buffer, because an idle connection may
// use at most 20 KB (PROTOCOL 2).
func TestLineReaderHoldsNothingWhileItWaits(t *testing.T) {
	const readers = 400
	before := heap()
	var waiting, done sync.WaitGroup
	waiting.Add(readers)
	end := make(chan struct{})
	for range readers {
		done.Go(func() {
			r := schema.NewLineReader(&waiter{line: "first\n", waiting: &waiting, end: end}, schema.MaxLine)
			line, err := r.Next()
			if string(line) != "first" || err != nil {
				t.Errorf("%q, %v", line, err)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	after := heap()
	close(end)
	done.Wait()
	if each := (after - before) / readers; each > 4<<10 {
		t.Errorf("each waiting reader holds %d bytes", each)
	}
}

// quiet is a Source that returns one text, and then no data.
type quiet struct{ text string }

func (q *quiet) ReadOnce(p []byte) (n int, more bool, err error) {
	n = copy(p, q.text)
	q.text = q.text[n:]
	return n, q.text != "", nil
}

// TestLineReaderGivesItsBufferBack checks that a reader with a Source has a buffer only while it has a part of a line or returned lines
// are valid.
func TestLineReaderGivesItsBufferBack(t *testing.T) {
	const readers = 400
	for rest, most := range map[string]int64{"": 4 << 10, "half a line": 4<<10 + 2*schema.MaxLine} {
		before := heap()
		all := make([]*schema.LineReader, readers)
		for i := range all {
			r, src := schema.NewLineReader(nil, schema.MaxLine), &quiet{"first\n" + rest}
			all[i] = r
			if r.Buffered() || r.Fill(src) || !r.Buffered() {
				t.Fatal("Buffered or Fill is wrong at the first Fill")
			}
			line, ok, err := r.TryNext()
			if string(line) != "first" || !ok || err != nil {
				t.Fatalf("%q, %v, %v", line, ok, err)
			}
			if _, ok, _ := r.TryNext(); ok || string(line) != "first" {
				t.Fatalf("the line is now %q", line)
			}
			if i%2 == 0 {
				r.Trim()
			} else if r.Fill(src) {
				t.Fatal("there is more")
			}
			if r.Buffered() != (rest != "") {
				t.Fatal("Buffered is wrong")
			}
		}
		if each := (heap() - before) / readers; each > most {
			t.Errorf("with %q left each holds %d bytes", rest, each)
		}
		runtime.KeepAlive(all)
	}
}

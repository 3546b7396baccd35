package tool

import "io"

// bounded keeps what is written to it up to a limit. One byte more calls full, and what follows is dropped.
type bounded struct {
	limit int64
	data  []byte
	full  func()
	over  bool
}

// Write never fails before the limit.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - int64(len(b.data))
	if b.over || int64(len(p)) > room {
		if !b.over {
			b.over = true
			b.full()
		}
		return 0, io.ErrShortWrite
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ data []byte }

// saidBytes is how much of a tool's standard error is kept.
const saidBytes = 4 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > saidBytes {
		p = p[n-saidBytes:]
	}
	if over := len(t.data) + len(p) - saidBytes; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, p...)
	return n, nil
}

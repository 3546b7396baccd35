package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// outlet passes all of a program's standard error to its caller, in order, through a FIFO. The program waits for
// its caller as at a pipe. Its end does not: what was not read by then, at most what a pipe holds, is delivered after it. Of several
// programs at one FIFO, as after a restart, each waits for the one before.
type outlet struct {
	host   *Host
	path   string
	file   *os.File      // nil: there is no caller
	before chan struct{} // closed when the program before this one has delivered; nil: there was none
	over   chan struct{} // closed when this one has

	once  sync.Once
	ended chan struct{} // closed by end

	mu     sync.Mutex // guards the rest
	closed bool       // nothing is accepted any more
	rest   []byte     // not delivered when the program ended
}

// openOutlet opens the FIFO of a caller; "" is no caller. A caller that has gone is none.
func (h *Host) openOutlet(path string) (*outlet, error) {
	o := &outlet{host: h, path: path, ended: make(chan struct{}), over: make(chan struct{})}
	if path == "" {
		return o, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENXIO) { // nobody reads
		return o, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open standard error: %w", err)
	}
	if info, err := file.Stat(); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		return nil, errors.Join(fmt.Errorf("%w: %s is not a FIFO", ErrCommand, path), err, file.Close())
	}
	o.file = file
	h.mu.Lock()
	defer h.mu.Unlock()
	o.before, h.outlets[path] = h.outlets[path], o.over
	return o, nil
}

// write delivers b. It blocks until the caller has read it, or the program has ended.
func (o *outlet) write(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil && !o.closed {
		o.send(b)
	}
}

// note delivers a line of the host, also after the program's end.
func (o *outlet) note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.file == nil:
	case !o.closed:
		o.send([]byte(line + "\n"))
	default:
		late, err := o.host.openOutlet(o.path)
		if err != nil || late.file == nil {
			return // the caller has gone
		}
		late.end()
		late.write([]byte(line + "\n"))
		if !o.host.work(late.deliver) {
			late.close()
		}
	}
}

// send is write for a caller that has locked mu.
func (o *outlet) send(b []byte) {
	if len(o.rest) == 0 && o.turn(o.ended) {
		n, err := o.file.Write(b)
		if b = b[n:]; err == nil {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // the caller has gone
			o.closed = true
			o.close()
			return
		}
	}
	o.rest = append(o.rest, b...)
}

// turn waits until the program before has delivered. It reports false if stop is closed before.
func (o *outlet) turn(stop <-chan struct{}) bool {
	if o.before == nil {
		return true
	}
	select {
	case <-o.before:
		return true
	case <-stop:
		return false
	}
}

// end tells that the program has ended: write does not block any more.
func (o *outlet) end() {
	o.once.Do(func() {
		if o.file != nil {
			_ = o.file.SetWriteDeadline(time.Unix(1, 0)) // fails only on a closed file
		}
		close(o.ended) // after the deadline, which deliver takes back
	})
}

// deliver writes what the program's end has left, and closes the FIFO. When the host closes, the caller has a moment to read.
func (o *outlet) deliver() {
	o.mu.Lock()
	done := o.file == nil || o.closed
	o.closed = true
	o.mu.Unlock()
	if done {
		return
	}
	defer o.close()
	if len(o.rest) == 0 || !o.turn(o.host.closing) {
		return
	}
	_ = o.file.SetWriteDeadline(time.Time{}) // fails only on a closed file
	written := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-o.host.closing:
			_ = o.file.SetWriteDeadline(time.Now().Add(lastWords))
		case <-written:
		}
	})
	_, _ = o.file.Write(o.rest) // fails if the caller has gone
	close(written)
	watch.Wait()
}

// close closes the FIFO, and lets the next program write to it. It is called once.
func (o *outlet) close() {
	closeFile(o.file)
	o.host.mu.Lock()
	defer o.host.mu.Unlock()
	if o.host.outlets[o.path] == o.over {
		delete(o.host.outlets, o.path)
		select {
		case <-o.before:
		default: // this one has not had its turn
			if o.before != nil {
				o.host.outlets[o.path] = o.before
			}
		}
	}
	close(o.over)
}

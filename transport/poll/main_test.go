package poll_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/poll"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// bound is the time limit of a test's waits.
const bound = 20 * time.Second

// each runs test with every poller.
func each(t *testing.T, test func(t *testing.T, p poll.Poller)) {
	t.Helper()
	t.Parallel()
	for name, open := range pollers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := open()
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Close()) })
			test(t, p)
		})
	}
}

// kinds are the kinds of streams.
var kinds = map[string]func(testing.TB) (poll.Source, *peer){"socket": newSocket, "pair": newPair}

// eachKind is each with every kind of stream.
func eachKind(t *testing.T, test func(t *testing.T, p poll.Poller, s *watched, far *peer)) {
	t.Helper()
	each(t, func(t *testing.T, p poll.Poller) {
		for name, open := range kinds {
			t.Run(name, func(t *testing.T) {
				src, far := open(t)
				test(t, p, watch(t, p, src), far)
			})
		}
	})
}

// peer is the other end of a stream: one file for a socket, two for a pair.
type peer struct{ in, out *os.File }

func (p *peer) close(t testing.TB) {
	t.Helper()
	testkit.Must(t, errors.Join(p.closeWrite(), closed(p.in.Close())))
}

// closeWrite ends the output of p.
func (p *peer) closeWrite() error {
	if p.in != p.out {
		return closed(p.out.Close())
	}
	raw, err := p.out.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
		err = errors.Join(err, controlErr)
	}
	return closed(err)
}

// closed returns err unless it is os.ErrClosed.
func closed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// newSocket returns the two ends of a pair of sockets.
func newSocket(t testing.TB) (poll.Source, *peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	testkit.Must(t, err)
	files := [2]*os.File{}
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		testkit.Must(t, unix.SetNonblock(fd, true))
		files[i] = os.NewFile(uintptr(fd), "socket")
		t.Cleanup(func() { testkit.Must(t, closed(files[i].Close())) })
	}
	raw := testkit.Value(files[0].SyscallConn())(t)
	return poll.Source{File: files[0], In: raw, Out: raw}, &peer{files[1], files[1]}
}

// pipes are the two ends of a program's input and output.
type pipes struct{ in, out *os.File }

func (p *pipes) Close() error                       { return errors.Join(closed(p.in.Close()), closed(p.out.Close())) }
func (p *pipes) SetReadDeadline(t time.Time) error  { return p.in.SetReadDeadline(t) }
func (p *pipes) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }

// newPair returns the two ends of two pipes.
func newPair(t testing.TB) (poll.Source, *peer) {
	t.Helper()
	theirIn, out, err := os.Pipe()
	testkit.Must(t, err)
	in, theirOut, err := os.Pipe()
	testkit.Must(t, err)
	far := &peer{theirIn, theirOut}
	near := &pipes{in, out}
	t.Cleanup(func() { far.close(t); testkit.Must(t, near.Close()) })
	return poll.Source{File: near, In: raw(t, in), Out: raw(t, out)}, far
}

func raw(t testing.TB, f *os.File) syscall.RawConn {
	t.Helper()
	raw, err := f.SyscallConn()
	testkit.Must(t, err)
	return raw
}

// watched is a stream with its reported events.
type watched struct {
	poll.Stream
	t    testing.TB
	p    poll.Poller
	got  poll.Event // since the last await
	hups int
}

// watch adds src to p. Events are reported on the goroutine that calls await.
func watch(t testing.TB, p poll.Poller, src poll.Source) *watched {
	t.Helper()
	w := &watched{t: t, p: p}
	var err error
	w.Stream, err = p.Add(src, func(e poll.Event) {
		w.got |= e
		if e&poll.Hup != 0 {
			w.hups++
		}
	})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, w.Close()) })
	return w
}

// await waits until all events of want were reported.
func (w *watched) await(want poll.Event) {
	w.t.Helper()
	for until := time.Now().Add(bound); w.got&want != want; {
		if time.Now().After(until) {
			w.t.Fatalf("events %b, want %b", w.got, want)
		}
		testkit.Must(w.t, w.p.Wait(bound, nil))
	}
	w.got &^= want
}

// read reads until nothing is left. The error is nil, or io.EOF at the end of input.
func (w *watched) read() (text []byte, err error) {
	w.t.Helper()
	buf := make([]byte, 4096)
	for {
		n, more, err := w.Read(buf)
		text = append(text, buf[:n]...)
		if err == poll.ErrAgain {
			if n != 0 || more {
				w.t.Fatalf("%d bytes, more %v with ErrAgain", n, more)
			}
			return text, nil
		}
		if err != nil || !more {
			return text, err
		}
	}
}

// readAll reads until it has n bytes.
func (w *watched) readAll(n int) []byte {
	w.t.Helper()
	var text []byte
	for len(text) < n {
		w.await(poll.In)
		more, err := w.read()
		testkit.Must(w.t, err)
		text = append(text, more...)
	}
	return text
}

// end reads to the end of input.
func (w *watched) end() (text []byte, err error) {
	w.t.Helper()
	for {
		w.await(poll.In)
		more, err := w.read()
		text = append(text, more...)
		if err != nil {
			return text, err
		}
	}
}

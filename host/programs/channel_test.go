package programs_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host/programs"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// stdio is a program's standard input and output, from the kernel's side.
type stdio struct{ out, in *os.File }

func (s *stdio) Read(b []byte) (int, error)         { return s.out.Read(b) }
func (s *stdio) Write(b []byte) (int, error)        { return s.in.Write(b) }
func (s *stdio) Close() error                       { return errors.Join(s.out.Close(), s.in.Close()) }
func (s *stdio) SetReadDeadline(t time.Time) error  { return s.out.SetReadDeadline(t) }
func (s *stdio) SetWriteDeadline(t time.Time) error { return s.in.SetWriteDeadline(t) }

func (s *stdio) RawConns() (in, out syscall.RawConn, err error) {
	if in, err = s.out.SyscallConn(); err != nil {
		return nil, nil, err
	}
	out, err = s.in.SyscallConn()
	return in, out, err
}

// hosted is an open channel, the program's ends, and the channel's events.
type hosted struct {
	*programs.Channel
	stdin, stdout *os.File
	gone          chan struct{}
	poller        poll.Poller
	got           atomic.Uint32
}

func newHosted(t *testing.T) *hosted {
	t.Helper()
	h := &hosted{gone: make(chan struct{})}
	stdin, in, err := os.Pipe()
	testkit.Must(t, err)
	out, stdout, err := os.Pipe()
	testkit.Must(t, err)
	h.stdin, h.stdout = stdin, stdout
	conn, err := unixsock.NewPairedConn(&stdio{out: out, in: in}, schema.OsMessage, schema.MaxLine, h.gone)
	testkit.Must(t, err)
	h.poller, err = poll.New()
	testkit.Must(t, err)
	watched := &sync.WaitGroup{}
	h.Channel = programs.NewChannel(conn, h.gone, watched)
	testkit.Must(t, h.Open(h.poller, func(e poll.Event) {
		h.got.Or(uint32(e))
		h.poller.Wake()
	}))
	t.Cleanup(func() {
		testkit.Must(t, errors.Join(h.Close(), h.Close()))
		watched.Wait()
		testkit.Must(t, h.poller.Close())
		_ = errors.Join(stdin.Close(), stdout.Close()) // a test may have closed them
	})
	return h
}

// await waits for all events in want.
func (h *hosted) await(t *testing.T, want poll.Event) {
	t.Helper()
	for ctx := testkit.Context(t); poll.Event(h.got.Load())&want != want; {
		testkit.Must(t, ctx.Err())
		testkit.Must(t, h.poller.Wait(time.Second, nil))
	}
	h.got.And(^uint32(want))
}

// next returns the next line.
func (h *hosted) next(t *testing.T) (string, error) {
	t.Helper()
	for more := true; ; more = h.Fill() {
		if line, ok, err := h.Next(); ok {
			return string(line), err
		}
		if !more {
			h.await(t, poll.In)
		}
	}
}

// Output of a program that does not read its input is still read, and the channel ends only with the program.
func TestProgramThatDoesNotListen(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	testkit.Must(t, h.stdin.Close())
	if n, err := h.Write([]byte("answer\n")); n != 7 || err != nil {
		t.Errorf("a write to a program that has closed its input: %d, %v", n, err)
	}
	_, err := h.stdout.WriteString("last\n")
	testkit.Must(t, err)
	testkit.Must(t, h.stdout.Close())
	if line, err := h.next(t); line != "last" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := h.next(t); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
	testkit.Must(t, h.poller.Wait(0, nil))
	if poll.Event(h.got.Load())&poll.Hup != 0 {
		t.Error("a running program counts as ended")
	}
	close(h.gone)
	h.await(t, poll.Hup)
}

// The end of a program ends its channel, even if another process has its ends open: its output is read, and no write waits
// for room.
func TestEndOfAProgramWithAnHeir(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	answers := make([]byte, 1<<20)
	n, err := h.Write(answers)
	if n == len(answers) || err != nil {
		t.Fatalf("a pipe took %d bytes, %v", n, err)
	}
	_, err = h.stdout.WriteString("last\nha")
	testkit.Must(t, err)
	close(h.gone)
	h.await(t, poll.Hup|poll.Out)
	if more, err := h.Write(answers[n:]); more != len(answers)-n || err != nil {
		t.Errorf("a write to a program that has ended: %d, %v", more, err)
	}
	for _, want := range []string{"last", "ha"} {
		if line, err := h.next(t); line != want || err != nil {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
	if _, err := h.next(t); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
}

// Other failures of a write are returned.
func TestWriteToAClosedChannel(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	testkit.Must(t, h.Close())
	if _, err := h.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

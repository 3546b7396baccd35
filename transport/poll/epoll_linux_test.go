package poll_test

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/poll"
)

// TestEpollDoesNotWakeForNothing: the loop wakes for input and for Wake only. It does not wake when a peer reads, even
// if the peer's buffer was full before.
func TestEpollDoesNotWakeForNothing(t *testing.T) {
	t.Parallel()
	p, err := poll.NewEpoll()
	testkit.Must(t, err)
	defer func() { testkit.Must(t, p.Close()) }()
	for range 100 {
		src, _ := newSocket(t)
		watch(t, p, src)
	}
	src, far := newSocket(t)
	var s poll.Stream
	s, err = p.Add(src, func(poll.Event) {
		buf := make([]byte, 8)
		for more := true; more; {
			n, again, err := s.Read(buf)
			if err == poll.ErrAgain {
				return
			}
			if more = again; err == nil {
				_, err = s.Write(buf[:n])
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	testkit.Must(t, err)
	n, err := s.Write(make([]byte, 1<<20))
	testkit.Must(t, err)
	_, err = io.CopyN(io.Discard, far.in, int64(n))
	testkit.Must(t, err)
	testkit.Must(t, p.Wait(-1, nil)) // for the event Out
	for range 100 {
		testkit.Must(t, p.Wait(0, nil)) // for events in the same batch
	}
	const exchanges = 200
	stop := make(chan struct{})
	returns := make(chan int)
	go func() {
		for n := 1; ; n++ {
			if err := p.Wait(-1, nil); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				returns <- n
				return
			default:
			}
		}
	}()
	for range exchanges {
		buf := make([]byte, 1)
		_, err := far.out.Write(buf)
		testkit.Must(t, err)
		_, err = io.ReadFull(far.in, buf)
		testkit.Must(t, err)
	}
	close(stop)
	p.Wake()
	if n := <-returns; n > exchanges+1 {
		t.Errorf("%d exchanges woke the loop %d times", exchanges, n)
	}
}

// TestEventOfAClosedStream: an event of a closed stream is not attributed to the stream that reuses its slot.
func TestEventOfAClosedStream(t *testing.T) {
	t.Parallel()
	p, err := poll.NewEpoll()
	testkit.Must(t, err)
	defer func() { testkit.Must(t, p.Close()) }()
	src, _ := newSocket(t)
	gone := watch(t, p, src).Stream
	if !poll.Finds(p, gone, gone) {
		t.Error("an event was not attributed to its stream")
	}
	testkit.Must(t, gone.Close())
	src, _ = newSocket(t)
	next := watch(t, p, src).Stream
	if poll.Finds(p, gone, next) || !poll.Finds(p, next, next) {
		t.Error("an event was attributed to another stream")
	}
}

// BenchmarkEcho measures one exchange. The loop and the peer share the benchmark's goroutine.
func BenchmarkEcho(b *testing.B) {
	for name, open := range pollers() {
		b.Run(name, func(b *testing.B) {
			p, err := open()
			testkit.Must(b, err)
			defer func() { testkit.Must(b, p.Close()) }()
			src, far := newSocket(b)
			notified := false
			s, err := p.Add(src, func(poll.Event) { notified = true })
			testkit.Must(b, err)
			buf := make([]byte, 64)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := far.out.Write(buf[:32]); err != nil {
					b.Fatal(err)
				}
				for notified = false; !notified; {
					testkit.Must(b, p.Wait(-1, nil))
				}
				n, _, err := s.Read(buf)
				if err == nil {
					_, err = s.Write(buf[:n])
				}
				if err == nil {
					_, err = io.ReadFull(far.in, buf[:n])
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWake measures a Wake while the loop runs, which makes no system call.
func BenchmarkWake(b *testing.B) {
	p, err := poll.NewEpoll()
	testkit.Must(b, err)
	defer func() { testkit.Must(b, p.Close()) }()
	b.ReportAllocs()
	for b.Loop() {
		p.Wake()
	}
}

// TestEpollRefusesBlocking: a blocking descriptor, which would block the loop, is refused and stays open.
func TestEpollRefusesBlocking(t *testing.T) {
	t.Parallel()
	p, err := poll.NewEpoll()
	testkit.Must(t, err)
	defer func() { testkit.Must(t, p.Close()) }()
	src, far := newPair(t)
	testkit.Must(t, src.Out.Control(func(fd uintptr) { testkit.Must(t, unix.SetNonblock(int(fd), false)) }))
	if _, err := p.Add(src, nil); err == nil || !strings.Contains(err.Error(), "blocks") {
		t.Errorf("added: %v", err)
	}
	testkit.Must(t, src.Out.Control(func(fd uintptr) { testkit.Must(t, unix.SetNonblock(int(fd), true)) }))
	_, err = src.File.(*pipes).out.WriteString("x")
	testkit.Must(t, err)
	_, err = io.ReadFull(far.in, make([]byte, 1))
	testkit.Must(t, err)
}

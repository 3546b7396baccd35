package poll_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/poll"
)

// TestReadInPieces: input is reported and read in parts; after a full buffer, more is true.
func TestReadInPieces(t *testing.T) {
	eachKind(t, func(t *testing.T, _ poll.Poller, s *watched, far *peer) {
		if n, more, err := s.Read(make([]byte, 8)); n != 0 || more || err != poll.ErrAgain {
			t.Fatalf("an empty stream: %d, %v, %v", n, more, err)
		}
		for range 3 {
			_, err := far.out.WriteString("abcdef")
			testkit.Must(t, err)
			s.await(poll.In)
			buf := make([]byte, 4)
			if n, more, err := s.Read(buf); n != 4 || !more || err != nil {
				t.Fatalf("a part: %d, %v, %v", n, more, err)
			}
			if n, more, err := s.Read(buf); n != 2 || more || err != nil || string(buf[:2]) != "ef" {
				t.Fatalf("the rest: %d, %v, %v", n, more, err)
			}
		}
	})
}

// TestAddWithInputWaiting: input that arrived before Add is reported.
func TestAddWithInputWaiting(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		for _, open := range kinds {
			src, far := open(t)
			_, err := far.out.WriteString("early")
			testkit.Must(t, err)
			s := watch(t, p, src)
			if got := s.readAll(5); string(got) != "early" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// TestDeadlinesOfTheOriginal: deadlines of the original connection, set before or after Add, do not affect the stream.
func TestDeadlinesOfTheOriginal(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		for _, open := range kinds {
			src, far := open(t)
			past := time.Unix(1, 0)
			testkit.Must(t, errors.Join(src.File.SetReadDeadline(past), src.File.SetWriteDeadline(past)))
			s := watch(t, p, src)
			for range 2 {
				_, err := far.out.WriteString("late")
				testkit.Must(t, err)
				if got := s.readAll(4); string(got) != "late" {
					t.Errorf("got %q", got)
				}
				_ = errors.Join(src.File.SetReadDeadline(past), src.File.SetWriteDeadline(past)) // it may be closed
			}
		}
	})
}

// TestWriteToASlowReader: Write writes as much as the peer's buffer holds, and Out is reported after the peer has read.
func TestWriteToASlowReader(t *testing.T) {
	eachKind(t, func(t *testing.T, _ poll.Poller, s *watched, far *peer) {
		text := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB: more than a socket or a pipe holds
		got := make(chan []byte)
		n, err := s.Write(text)
		testkit.Must(t, err)
		if n == len(text) {
			t.Fatal("everything was written at once")
		}
		if again, err := s.Write(text[n:]); again != 0 || err != nil {
			t.Fatalf("a full stream accepted %d more, %v", again, err)
		}
		go func() {
			all := make([]byte, len(text))
			_, _ = io.ReadFull(far.in, all)
			got <- all
		}()
		for n < len(text) {
			s.await(poll.Out)
			more, err := s.Write(text[n:])
			testkit.Must(t, err)
			n += more
		}
		if !bytes.Equal(<-got, text) {
			t.Error("the peer read something else")
		}
	})
}

// TestEndAfterInput: the end of input after reported but unread input is detected.
func TestEndAfterInput(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		for range 50 {
			for _, open := range kinds {
				src, far := open(t)
				other, behind := open(t)
				s, later := watch(t, p, src), watch(t, p, other)
				_, err := far.out.WriteString("last")
				testkit.Must(t, err)
				s.await(poll.In)
				testkit.Must(t, far.closeWrite())
				_, err = behind.out.WriteString("x")
				testkit.Must(t, err)
				later.await(poll.In) // then the end was polled as well
				n, more, err := s.Read(make([]byte, 8))
				if n != 4 || err != nil {
					t.Fatalf("read %d, %v", n, err)
				}
				if !more {
					s.await(poll.In)
				}
				if n, _, err := s.Read(make([]byte, 8)); n != 0 || err != io.EOF {
					t.Fatalf("read %d, %v, want the end", n, err)
				}
				testkit.Must(t, errors.Join(s.Close(), later.Close()))
			}
		}
	})
}

// TestHalfClose: a peer that has ended its output can be written to; Hup is reported once it has closed both
// directions.
func TestHalfClose(t *testing.T) {
	eachKind(t, func(t *testing.T, p poll.Poller, s *watched, far *peer) {
		_, err := far.out.WriteString("last")
		testkit.Must(t, err)
		testkit.Must(t, far.closeWrite())
		if text, err := s.end(); string(text) != "last" || err != io.EOF {
			t.Fatalf("got %q, %v", text, err)
		}
		testkit.Must(t, p.Wait(0, nil))
		if s.hups != 0 {
			t.Fatal("Hup was reported after a half-close")
		}
		_, err = s.Write([]byte("answer"))
		testkit.Must(t, err)
		buf := make([]byte, 6)
		if _, err := io.ReadFull(far.in, buf); err != nil || string(buf) != "answer" {
			t.Fatalf("the peer read %q, %v", buf, err)
		}
		far.close(t)
		s.await(poll.Hup | poll.In)
		if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
	})
}

// TestHangUpWhileNotReading: a loop that does not read gets one Hup, and can read the bytes before it.
func TestHangUpWhileNotReading(t *testing.T) {
	eachKind(t, func(t *testing.T, p poll.Poller, s *watched, far *peer) {
		_, err := far.out.WriteString("unread")
		testkit.Must(t, err)
		s.await(poll.In)
		far.close(t)
		s.await(poll.Hup | poll.In)
		notified := s.hups
		p.Wake() // so that Wait returns without an event
		testkit.Must(t, p.Wait(-1, nil))
		testkit.Must(t, p.Wait(0, nil))
		if s.hups != notified || notified != 1 {
			t.Errorf("Hup was reported %d times, then %d", notified, s.hups)
		}
		if text, err := s.read(); string(text) != "unread" || err != io.EOF {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

// TestHangUpWhileWriting: a writer that waits for Out gets Hup when the peer closes.
func TestHangUpWhileWriting(t *testing.T) {
	eachKind(t, func(t *testing.T, p poll.Poller, s *watched, far *peer) {
		_, err := s.Write(make([]byte, 2<<20))
		testkit.Must(t, err)
		far.close(t)
		s.await(poll.Out | poll.Hup)
		for range 3 {
			testkit.Must(t, p.Wait(0, nil))
		}
		if s.hups != 1 {
			t.Errorf("Hup was reported %d times", s.hups)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
	})
}

// TestPairWhosePeerDoesNotRead: a program that closes its input and goes on writing gets no Hup.
func TestPairWhosePeerDoesNotRead(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		src, far := newPair(t)
		s := watch(t, p, src)
		testkit.Must(t, far.in.Close())
		if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
		_, err := far.out.WriteString("more")
		testkit.Must(t, err)
		if got := s.readAll(4); string(got) != "more" || s.hups != 0 {
			t.Errorf("got %q and %d hang-ups", got, s.hups)
		}
		testkit.Must(t, far.closeWrite())
		s.await(poll.Hup | poll.In)
		if _, err := s.read(); err != io.EOF {
			t.Errorf("got %v at the end", err)
		}
	})
}

// TestCloseRead: CloseRead keeps the input that has arrived, and drops later input.
func TestCloseRead(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		src, far := newSocket(t)
		s := watch(t, p, src)
		_, err := far.out.WriteString("before")
		testkit.Must(t, err)
		testkit.Must(t, s.CloseRead())
		if text, err := s.end(); string(text) != "before" || err != io.EOF {
			t.Errorf("got %q, %v", text, err)
		}
		if _, err := far.out.WriteString("behind"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the peer could still write: %v", err)
		}
		if _, err := s.Write([]byte("answer")); err != nil {
			t.Errorf("the answer: %v", err)
		}
		pair, _ := newPair(t)
		testkit.Must(t, watch(t, p, pair).CloseRead())
	})
}

// TestWake: Wake ends the current Wait, or the next one.
func TestWake(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		src, _ := newSocket(t)
		watch(t, p, src)
		p.Wake()
		p.Wake()
		testkit.Must(t, p.Wait(-1, nil))
		for range 1000 {
			done := make(chan error)
			go func() { done <- p.Wait(-1, nil) }()
			p.Wake()
			testkit.Must(t, <-done)
		}
	})
}

// TestWakeFromManyGoroutines: no Wake is lost: after Wait, everything that was posted before the Wake is visible.
func TestWakeFromManyGoroutines(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		const wakers, times = 8, 2000
		var posted atomic.Int32
		var done sync.WaitGroup
		for range wakers {
			done.Go(func() {
				for range times {
					posted.Add(1)
					p.Wake()
				}
			})
		}
		for posted.Load() < wakers*times {
			testkit.Must(t, p.Wait(-1, nil))
		}
		done.Wait()
	})
}

// TestTimeout: Wait returns after its timeout; 0 does not block.
func TestTimeout(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		testkit.Must(t, p.Wait(0, nil))
		begin := time.Now()
		for range 3 {
			testkit.Must(t, p.Wait(500*time.Microsecond, nil))
		}
		if waited := time.Since(begin); waited < 1500*time.Microsecond {
			t.Errorf("three timeouts of 500 µs took %v", waited)
		}
	})
}

// TestReadersOnFakeTime: the portable poller works with synctest's clock.
func TestReadersOnFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := poll.NewReaders()
		begin := time.Now()
		testkit.Must(t, p.Wait(time.Hour, nil))
		if waited := time.Since(begin); waited != time.Hour {
			t.Errorf("a wait of one hour took %v", waited)
		}
		done := make(chan error)
		go func() { done <- p.Wait(-1, nil) }()
		synctest.Wait()
		p.Wake()
		testkit.Must(t, <-done)
		testkit.Must(t, p.Close())
	})
}

// TestCloseDuringWait: streams and the poller may be closed during Wait, from any goroutine and more than once.
func TestCloseDuringWait(t *testing.T) {
	eachKind(t, func(t *testing.T, p poll.Poller, s *watched, far *peer) {
		done := make(chan error)
		go func() { done <- p.Wait(-1, nil) }()
		testkit.Must(t, s.Close())
		testkit.Must(t, s.Close())
		if _, _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if _, err := s.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := s.CloseRead(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("close of the input: %v", err)
		}
		if _, err := far.in.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the peer reads %v", err)
		}
		p.Wake()
		testkit.Must(t, <-done)
		if s.got != 0 {
			t.Errorf("a closed stream got the events %b", s.got)
		}
	})
}

// TestClosePoller: Close of the poller closes its streams, ends Wait, and makes later calls fail.
func TestClosePoller(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		var far []*peer
		for _, open := range kinds {
			src, f := open(t)
			watch(t, p, src)
			far = append(far, f)
		}
		done := make(chan error)
		go func() {
			for {
				if err := p.Wait(-1, nil); err != nil {
					done <- err
					return
				}
			}
		}()
		testkit.Must(t, p.Close())
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
		for _, f := range far {
			if _, err := f.in.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("a peer reads %v", err)
			}
		}
		testkit.Must(t, p.Close())
		p.Wake()
		if err := p.Wait(0, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Wait after it: %v", err)
		}
		for _, open := range kinds {
			src, f := open(t)
			if _, err := p.Add(src, nil); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Add after it: %v", err)
			}
			testkit.Must(t, src.File.Close()) // after an error it still belongs to the caller
			if _, err := f.in.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the peer reads %v", err)
			}
		}
	})
}

// TestCloseInNotify: a notify function may close other streams; a closed stream gets no event.
func TestCloseInNotify(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		const streams = 20
		var open [streams]poll.Stream
		var far [streams]*peer
		notified := 0
		for i := range open {
			var src poll.Source
			src, far[i] = newSocket(t)
			var err error
			open[i], err = p.Add(src, func(poll.Event) {
				notified++
				for _, s := range open {
					testkit.Must(t, s.Close())
				}
			})
			testkit.Must(t, err)
		}
		for _, f := range far {
			_, err := f.out.WriteString("x")
			testkit.Must(t, err)
		}
		for notified == 0 {
			testkit.Must(t, p.Wait(bound, nil))
		}
		testkit.Must(t, p.Wait(0, nil))
		if notified != 1 {
			t.Errorf("%d streams were notified", notified)
		}
	})
}

// TestManyStreams: each of a thousand short-lived streams gets its own events.
func TestManyStreams(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		const streams = 1000
		var echoed sync.WaitGroup
		for round := range 2 {
			left := streams
			for i := range streams {
				src, far := newSocket(t)
				want := []byte{byte(i), byte(i >> 8), byte(round)}
				var s poll.Stream
				added := make(chan struct{})
				s, err := p.Add(src, func(e poll.Event) {
					<-added
					buf := make([]byte, 8)
					n, _, err := s.Read(buf)
					switch {
					case err == poll.ErrAgain:
					case err == nil:
						if !bytes.Equal(buf[:n], want) {
							t.Errorf("stream %d read %v", i, buf[:n])
						}
						if _, err := s.Write(buf[:n]); err != nil {
							t.Errorf("stream %d: %v", i, err)
						}
					default:
						left--
						if err != io.EOF {
							t.Errorf("stream %d: %v", i, err)
						}
						testkit.Must(t, s.Close())
					}
				})
				testkit.Must(t, err)
				close(added)
				echoed.Go(func() {
					buf := make([]byte, 3)
					_, err := far.out.Write(want)
					if err == nil {
						_, err = io.ReadFull(far.in, buf)
					}
					if err != nil || !bytes.Equal(buf, want) {
						t.Errorf("peer %d read %v, %v", i, buf, err)
					}
					far.close(t)
				})
			}
			for left > 0 {
				testkit.Must(t, p.Wait(bound, nil))
			}
			echoed.Wait()
		}
	})
}

// TestWakeOften: a waiting poller can be woken more than 255 times.
func TestWakeOften(t *testing.T) {
	each(t, func(t *testing.T, p poll.Poller) {
		for range 1000 {
			done, begun := make(chan error, 1), make(chan struct{})
			go func() {
				close(begun)
				done <- p.Wait(-1, nil)
			}()
			<-begun
			time.Sleep(20 * time.Microsecond) // most of them are in Wait then
			p.Wake()
			testkit.Must(t, <-done)
		}
	})
}

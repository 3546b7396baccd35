package unixsock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// eachPoller runs test with each kind of poller.
func eachPoller(t *testing.T, test func(t *testing.T, p poll.Poller)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func() (poll.Poller, error){
		"system":  poll.New,
		"readers": func() (poll.Poller, error) { return poll.NewReaders(), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := open()
			must(t, err)
			t.Cleanup(func() { must(t, p.Close()) })
			test(t, p)
		})
	}
}

// looped is an open link with its events. They are reported on the goroutine that calls await.
type looped struct {
	*unixsock.Link
	t   *testing.T
	p   poll.Poller
	got atomic.Uint32
}

func loop(t *testing.T, p poll.Poller, link *unixsock.Link) *looped {
	t.Helper()
	l := &looped{Link: link, t: t, p: p}
	must(t, link.Open(p, func(e poll.Event) {
		l.got.Or(uint32(e))
		p.Wake()
	}))
	return l
}

// await waits until all events of want were reported.
func (l *looped) await(want poll.Event) {
	l.t.Helper()
	const bound = 20 * time.Second
	for until := time.Now().Add(bound); poll.Event(l.got.Load())&want != want; {
		if time.Now().After(until) {
			l.t.Fatalf("events %b, want %b", l.got.Load(), want)
		}
		must(l.t, l.p.Wait(bound, nil))
	}
	l.got.And(^uint32(want))
}

// lines reads until there are n lines or an error, and returns them joined with '|'.
func (l *looped) lines(n int) (string, error) {
	l.t.Helper()
	var got []string
	for more := false; ; {
		for len(got) < n {
			line, ok, err := l.Next()
			if err != nil {
				return strings.Join(got, "|"), err
			}
			if !ok {
				break
			}
			got = append(got, string(line))
		}
		if len(got) == n {
			return strings.Join(got, "|"), nil
		}
		if !more {
			l.await(poll.In)
		}
		more = l.Fill()
	}
}

// want reads lines up to an error, and compares both with the arguments.
func (l *looped) want(lines string, want error) {
	l.t.Helper()
	if got, err := l.lines(1 << 30); got != lines || !errors.Is(err, want) {
		l.t.Errorf("got %.100q, %v, want %.100q, %v", got, err, lines, want)
	}
	if _, ok, err := l.Next(); !ok || !errors.Is(err, want) || l.Fill() {
		l.t.Errorf("%v is not final", want)
	}
}

// socketPair returns two connected sockets.
func socketPair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	near, far, err := unixsock.Pair()
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(near.Close(), far.Close()) }) // fails if they are closed
	return near, far
}

// socketConn returns a Conn over a socket, and the other end.
func socketConn(t *testing.T) (*unixsock.Conn, *net.UnixConn) {
	t.Helper()
	near, far := socketPair(t)
	conn, err := unixsock.NewConn(near, schema.OsMessage, schema.MaxLine)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // fails if it is closed
	return conn, far
}

func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(w, text)
	must(t, err)
}

// TestLinkAfterThePrologue: bytes that arrived with the prologue's answer are read first, no later ones are lost, and
// answers are sent.
func TestLinkAfterThePrologue(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		conn, far := socketConn(t)
		send(t, far, `{"kind":"reply","type":"Syscall.Authenticate","data":null}`+"\nfirst\nsec")
		must(t, access.Greet(conn, nil))
		l := loop(t, p, conn.Link())
		if got, err := l.lines(1); got != "first" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		send(t, far, "ond\nthird\n")
		if got, err := l.lines(2); got != "second|third" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if l.Dialect() != schema.OsMessage || l.LineLimit() != schema.MaxLine {
			t.Error("Link returned another link")
		}
		must(t, readLine(far)) // the offer
		n, err := l.Write([]byte("answer\n"))
		if n != 7 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		must(t, readLine(far))
		send(t, far, strings.Repeat("x", schema.MaxLine+1)+"\nlast")
		if _, err := l.lines(1); err != schema.ErrLineTooLong {
			t.Fatalf("a long line: %v", err)
		}
		must(t, far.CloseWrite())
		l.want("last", io.EOF)
		must(t, far.Close())
		l.await(poll.Hup)
		must(t, l.Close())
		must(t, l.Close())
		l.got.Store(0)
		must(t, conn.Close())
		if l.got.Load() != 0 {
			t.Error("a closed link got an event")
		}
	})
}

// TestLinkInterrupted: Interrupt ends the input after the lines that were read, from any goroutine, also before Open.
func TestLinkInterrupted(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		conn, far := socketConn(t)
		l := loop(t, p, conn.Link())
		send(t, far, "a\nb\nhalf")
		if got, err := l.lines(1); got != "a" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		l.got.Store(0)
		go func() {
			l.Interrupt()
			l.Interrupt()
		}()
		l.await(poll.In | poll.Hup)
		send(t, far, "unread\n")
		l.Fill()
		l.want("b", unixsock.ErrInterrupted)
		l.Interrupt()

		early, far := socketConn(t)
		send(t, far, "unread\n")
		early.Link().Interrupt()
		loop(t, p, early.Link()).want("", unixsock.ErrInterrupted)
	})
}

// TestLinkDrained: Drain keeps the input that has arrived, and the peer's next write fails.
func TestLinkDrained(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		text := strings.Repeat("line\n", 10_000) // more than one read returns
		for _, before := range []bool{false, true} {
			conn, far := socketConn(t)
			send(t, far, text)
			if before {
				conn.Drain()
			}
			l := loop(t, p, conn.Link())
			if !before {
				if got, err := l.lines(1); got != "line" || err != nil {
					t.Fatalf("got %q, %v", got, err)
				}
				text = text[len("line\n"):]
				conn.Drain()
			}
			l.await(poll.Hup)
			if _, err := far.Write([]byte("late\n")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the peer could still write: %v", err)
			}
			l.Interrupt() // input that has arrived is read in spite of it
			l.want(strings.TrimSuffix(strings.ReplaceAll(text, "\n", "|"), "|"), io.EOF)
			text = strings.Repeat("line\n", 10_000)
		}
	})
}

// TestShutdownTimeoutWithLinks: when the time of the handlers is over, the server closes open links, and their loops
// get an event.
func TestShutdownTimeoutWithLinks(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		begun, ended := make(chan struct{}), make(chan error, 1)
		server := start(t, unixsock.ServerConfig{Handler: func(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
			defer done()
			l := loop(t, p, conn.Link())
			close(begun)
			_, err := l.lines(1)
			ended <- err
		}})
		nc, _ := connectTo(t, server.KernelSocket)
		<-begun
		server.cancel()
		must(t, <-server.served)
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the handler got %v", err)
		}
		if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
			t.Errorf("the client got %q, %v", got, err)
		}
	})
}

// TestUnreadInputOfALink: a client whose input was not read gets io.EOF, not a reset.
func TestUnreadInputOfALink(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		begun, sent := make(chan *looped), make(chan struct{})
		server := start(t, unixsock.ServerConfig{Handler: func(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
			defer done()
			l := loop(t, p, conn.Link())
			begun <- l
			<-sent
			_, _ = l.Write([]byte("bye\n"))
		}})
		nc, _ := connectTo(t, server.KernelSocket)
		l := <-begun // later input does not arrive with the prologue
		send(t, nc, strings.Repeat("unread\n", 1000))
		close(sent)
		if got, err := io.ReadAll(nc); string(got) != "bye\n" || err != nil {
			t.Errorf("the client got %q, %v", got, err)
		}
		must(t, server.Shutdown(t.Context()))
		must(t, <-server.served)
		if poll.Event(l.got.Load())&poll.Hup != 0 {
			t.Error("the link of a handler that has returned got an event")
		}
	})
}

// TestLinkOfAProgram: Hup is reported when a program has ended, not when it has closed its output. Its output is then
// read to the end, with an incomplete line, though another process keeps the pipes open.
func TestLinkOfAProgram(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		for _, closes := range []bool{false, true} {
			stdin, in, err := os.Pipe()
			must(t, err)
			out, stdout, err := os.Pipe()
			must(t, err)
			conn, err := unixsock.NewPairedConn(&pair{in: out, out: in}, schema.OsMessage, schema.MaxLine, make(chan struct{}))
			must(t, err)
			l := loop(t, p, conn.Link())
			send(t, stdout, strings.Repeat("a\n", 20_000)+"ha")
			if got, err := l.lines(1); got != "a" || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			if closes {
				must(t, errors.Join(stdin.Close(), stdout.Close()))
				l.want(strings.Repeat("a|", 19_999)+"ha", io.EOF)
				must(t, p.Wait(0, nil))
				if poll.Event(l.got.Load())&poll.Hup != 0 {
					t.Error("Hup was reported while the program runs")
				}
				l.Gone()
			} else {
				for full := false; !full; { // the peer does not read: the end must not wait for Out
					n, err := l.Write(make([]byte, 1<<16))
					must(t, err)
					full = n < 1<<16
				}
				go l.Gone()
				l.await(poll.Out)
				l.Fill()
				l.want(strings.Repeat("a|", 19_999)+"ha", io.EOF)
			}
			l.await(poll.Hup)
			must(t, l.Close())
			if !closes {
				must(t, errors.Join(stdin.Close(), stdout.Close()))
			}
		}
	})
}

// TestLinkOfAProgramWithAnotherWriter: input of a process that goes on writing to a dead program's output is bounded.
func TestLinkOfAProgramWithAnotherWriter(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		stdin, in, err := os.Pipe()
		must(t, err)
		out, stdout, err := os.Pipe()
		must(t, err)
		conn, err := unixsock.NewPairedConn(&pair{in: out, out: in}, schema.OsMessage, schema.MaxLine, make(chan struct{}))
		must(t, err)
		l := loop(t, p, conn.Link())
		l.Gone()
		flood := strings.Repeat("flood\n", 4096)
		for sent, read := 0, 0; ; {
			if read > 2<<20 {
				t.Fatalf("more than %d bytes were read", read)
			}
			send(t, stdout, flood)
			for sent += len(flood); read < sent; { // there is always input
				l.Fill()
				line, ok, err := l.Next()
				for ; ok && err == nil; line, ok, err = l.Next() {
					read += len(line) + 1
				}
				if err == io.EOF {
					must(t, errors.Join(l.Close(), stdin.Close(), stdout.Close()))
					return
				}
				must(t, err)
			}
		}
	})
}

// TestLinkClosed: a closed link cannot be opened, and an open one that is closed returns errors.
func TestLinkClosed(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		conn, _ := socketConn(t)
		must(t, conn.Close())
		if err := conn.Link().Open(p, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Open: %v", err)
		}
		conn, far := socketConn(t)
		if conn.Link().Fill() {
			t.Error("a link that is not open has more to read")
		}
		if n, err := conn.Link().Write([]byte("early\n")); n != 6 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		must(t, readLine(far))
		l := loop(t, p, conn.Link())
		l.got.Store(0)
		must(t, conn.Close())
		l.await(poll.In | poll.Hup)
		l.Fill()
		l.want("", net.ErrClosed)
		if _, err := l.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
	})
}

// counted is a socket that counts its ends.
type counted struct {
	*net.UnixConn
	ended int
}

func (c *counted) Detach() error { return c.UnixConn.Close() }

func (c *counted) Close() error {
	c.ended++
	return c.UnixConn.Close()
}

// TestLinkOfADetacher: a Detacher is closed when the link is closed, not when it is opened.
func TestLinkOfADetacher(t *testing.T) {
	eachPoller(t, func(t *testing.T, p poll.Poller) {
		near, far := socketPair(t)
		nc := &counted{UnixConn: near}
		conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
		must(t, err)
		l := loop(t, p, conn.Link())
		send(t, far, "line\n")
		if got, err := l.lines(1); got != "line" || err != nil || nc.ended != 0 {
			t.Errorf("got %q, %v and %d ends", got, err, nc.ended)
		}
		must(t, errors.Join(l.Close(), l.Close()))
		if nc.ended != 1 {
			t.Errorf("the detacher was closed %d times", nc.ended)
		}
	})
}

// TestIdleLinksAreSmall: the transport's part of the bound of 10 KB for an idle connection. It measures the heap of the
// process, so the test is not parallel.
func TestIdleLinksAreSmall(t *testing.T) {
	const links = 300
	p, err := poll.New()
	must(t, err)
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	var far []*net.UnixConn
	open := make([]*looped, links)
	before := heap()
	for i := range open {
		conn, nc := socketConn(t)
		far = append(far, nc)
		open[i] = loop(t, p, conn.Link())
		send(t, nc, "line\n")
	}
	for _, l := range open {
		if got, err := l.lines(1); got != "line" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		l.Fill()
	}
	each := (heap() - before) / links
	t.Logf("an idle link, with its peer and the test's own data, takes %d bytes", each)
	if each > 6<<10 {
		t.Errorf("an idle link takes %d bytes", each)
	}
	runtime.KeepAlive(far)
	must(t, p.Close())
}

package unixsock_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// pair is two pipes, like a program's standard input and output.
type pair struct{ in, out *os.File }

func (p *pair) Read(b []byte) (int, error)         { return p.in.Read(b) }
func (p *pair) Write(b []byte) (int, error)        { return p.out.Write(b) }
func (p *pair) Close() error                       { return errors.Join(p.in.Close(), p.out.Close()) }
func (p *pair) SetReadDeadline(t time.Time) error  { return p.in.SetReadDeadline(t) }
func (p *pair) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }

func (p *pair) RawConns() (in, out syscall.RawConn, err error) {
	if in, err = p.in.SyscallConn(); err != nil {
		return nil, nil, err
	}
	out, err = p.out.SyscallConn()
	return in, out, err
}

// newPair returns a channel over two pipes, and the program's ends.
func newPair(t *testing.T) (conn *unixsock.Conn, stdin, stdout *os.File) {
	t.Helper()
	stdin, in, err := os.Pipe()
	must(t, err)
	out, stdout, err := os.Pipe()
	must(t, err)
	conn, err = unixsock.NewPairedConn(&pair{in: out, out: in}, schema.OsMessage, schema.MaxLine, nil)
	must(t, err)
	t.Cleanup(func() {
		_ = errors.Join(conn.Close(), stdin.Close(), stdout.Close())
	})
	return conn, stdin, stdout
}

// TestGreetOverPipes: a program completes the prologue on its standard input and output, and its next bytes are the
// first frame.
func TestGreetOverPipes(t *testing.T) {
	t.Parallel()
	conn, stdin, stdout := newPair(t)
	_, err := stdout.WriteString(`{"kind":"query","type":"Syscall.Ping","data":1,"metadata":{"id":"a","timestamp":1}}` + "\n" +
		`{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\nnext\n")
	must(t, err)
	must(t, access.Greet(conn, nil))
	line, err := conn.Next()
	must(t, err)
	if string(line) != "next" {
		t.Errorf("the line after the prologue is %q", line)
	}
	must(t, conn.Close())
	said, err := io.ReadAll(stdin)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"data":{"scheme":"none"}`) || !strings.Contains(lines[1], `"code":401`) {
		t.Errorf("the kernel sent %q", lines)
	}
}

// TestPairedConn: TryWrite writes as much as the pipe holds; the end of a program ends its prologue.
func TestPairedConn(t *testing.T) {
	t.Parallel()
	conn, stdin, stdout := newPair(t)
	much := make([]byte, 1<<20)
	n, err := conn.TryWrite(much)
	must(t, err)
	if n == 0 || n == len(much) {
		t.Errorf("%d bytes were written at once", n)
	}
	must(t, stdout.Close())
	_, err = io.CopyN(io.Discard, stdin, int64(n))
	must(t, err)
	if err := access.Greet(conn, nil); !errors.Is(err, io.EOF) {
		t.Errorf("a program that closed its output: %v", err)
	}
	must(t, stdin.Close())
	if _, err := conn.Write(much); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a program that has ended: %v", err)
	}
}

// TestPairedConnInterrupted: Interrupt ends a wait for input.
func TestPairedConnInterrupted(t *testing.T) {
	t.Parallel()
	conn, _, _ := newPair(t)
	done := make(chan error)
	go func() {
		_, err := conn.Next()
		done <- err
	}()
	conn.Interrupt()
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestPairedConnIsOver: after the last writer has closed, its output is read to the end, with an incomplete line,
// though the other end is open.
func TestPairedConnIsOver(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "a\nafter it, ha", strings.Repeat("a\n", 20_000) + "ha"} {
		stdin, in, err := os.Pipe()
		must(t, err)
		out, stdout, err := os.Pipe()
		must(t, err)
		over := make(chan struct{})
		conn, err := unixsock.NewPairedConn(&pair{in: out, out: in}, schema.OsMessage, schema.MaxLine, over)
		must(t, err)
		_, err = stdout.WriteString(first)
		must(t, err)
		if first != "" { // an incomplete line is in the buffer, or input is in the pipe
			_, err := conn.Next()
			must(t, err)
		}
		lines := make(chan string)
		go func() {
			defer close(lines)
			for {
				line, err := conn.Next()
				if err != nil {
					lines <- err.Error()
					return
				}
				lines <- string(line)
			}
		}()
		_, err = stdout.WriteString("lf\n")
		must(t, err)
		close(over)
		must(t, errors.Join(in.SetWriteDeadline(time.Unix(1, 0)), out.SetReadDeadline(time.Unix(1, 0))))
		var last string
		for line := range lines {
			if line == io.EOF.Error() {
				break
			}
			last = line
		}
		if !strings.HasSuffix(last, "lf") {
			t.Errorf("after %d bytes the last line is %q", len(first), last)
		}
		for range lines {
		}
		if _, err := conn.TryWrite([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		must(t, errors.Join(conn.Close(), stdin.Close(), stdout.Close()))
	}
}

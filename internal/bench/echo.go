package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// EchoMain is a process that echoes lines: it listens on the socket path that is its one argument, says so with a line on
// stdout, and ends when stdin does. It returns the exit status.
func EchoMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "echo: one argument, the path of the socket")
		return 2
	}
	if err := echoUntilEOF(args[0], stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "echo:", err)
		return 1
	}
	return 0
}

func echoUntilEOF(path string, stdin io.Reader, stdout io.Writer) error {
	var config net.ListenConfig
	ln, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s := &echoServer{ln: ln, conns: make(map[net.Conn]struct{})}
	var serving sync.WaitGroup
	serving.Go(s.serve)
	_, err = fmt.Fprintln(stdout, "listening")
	if err == nil {
		_, err = io.Copy(io.Discard, stdin)
	}
	closeErr := s.close()
	serving.Wait()
	return errors.Join(err, closeErr)
}

// echoServer is as plain as a server can be: what it takes, any server over this kind of socket takes.
type echoServer struct {
	ln net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after close
}

// serve returns when the listener was closed and every connection has ended.
func (s *echoServer) serve() {
	var echoing sync.WaitGroup
	defer echoing.Wait()
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		if !s.remember(conn) {
			return
		}
		echoing.Go(func() { echo(conn) })
	}
}

func (s *echoServer) remember(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = conn.Close() // nobody has said anything yet
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *echoServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.ln.Close()
	for conn := range s.conns {
		_ = conn.Close() // the same: who is still there has lost interest in the answers
	}
	s.conns = nil
	return err
}

// echo sends lines back, those that came together with one write.
func echo(conn net.Conn) {
	defer conn.Close()
	in, out := bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(conn, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if _, err := out.Write(line); err != nil {
			return
		}
		if in.Buffered() > 0 {
			continue
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
}

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// EchoMain runs a process that echoes lines. It listens on the socket path that is its one argument, prints a line when it
// listens, and ends at the end of stdin. It returns the exit status.
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
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the clients need no more answers
				echo(conn)
			})
		}
	})
	_, err = fmt.Fprintln(stdout, "listening")
	if err == nil {
		_, err = io.Copy(io.Discard, stdin)
	}
	stop()
	err = errors.Join(err, ln.Close())
	serving.Wait()
	return err
}

// echo sends lines back, those of one read with one write.
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

// EchoProcess is an echo server in a separate process.
type EchoProcess struct {
	Socket string // path

	cmd   *exec.Cmd
	stdin io.Closer
	dir   string
}

// endTime is how long the process may take to end before it is killed.
const endTime = 5 * time.Second

// StartEcho runs program, with args and a socket path, as a process that runs EchoMain. It ends with ctx, or with this
// process.
func StartEcho(ctx context.Context, program string, args ...string) (*EchoProcess, error) {
	dir, err := os.MkdirTemp("", "pwos-echo-")
	if err != nil {
		return nil, fmt.Errorf("make echo directory: %w", err)
	}
	e := &EchoProcess{Socket: filepath.Join(dir, "echo.sock"), dir: dir}
	e.cmd = exec.CommandContext(ctx, program, append(args, e.Socket)...)
	e.cmd.Stderr = os.Stderr
	if err := e.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start echo: %w", err), e.removeDir())
	}
	return e, nil
}

func (e *EchoProcess) start() error {
	stdin, err := e.cmd.StdinPipe()
	if err != nil {
		return err
	}
	e.stdin = stdin
	// The process follows the request to end that ctx sends, so its exit is no failure.
	e.cmd.Cancel = func() error { return errors.Join(stdin.Close(), os.ErrProcessDone) }
	e.cmd.WaitDelay = endTime
	stdout, err := e.cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	if err := e.cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return errors.Join(fmt.Errorf("no line that says that it listens: %w", err), stdin.Close(), e.cmd.Wait())
	}
	return nil
}

// Close ends the process and waits for it.
func (e *EchoProcess) Close() error {
	err := errors.Join(e.stdin.Close(), e.cmd.Wait(), e.removeDir())
	if err != nil {
		return fmt.Errorf("end echo: %w", err)
	}
	return nil
}

func (e *EchoProcess) removeDir() error { return os.RemoveAll(e.dir) }

package host_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// calls listens as a caller until the test ends, and returns where. The connection is passed to serve once.
func calls(t *testing.T, serve func(*net.UnixConn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "io")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	testkit.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := listener.AcceptUnix(); err == nil {
			serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return path
}

// handsOver is a caller that hands over files, and then waits for the end.
func handsOver(t *testing.T, files ...*os.File) string {
	t.Helper()
	fds := descriptors(files...)
	return calls(t, func(conn *net.UnixConn) {
		defer conn.Close()
		send(conn, fds)
		_, _ = conn.Read(make([]byte, 1))
	})
}

// descriptors are the numbers of files, for a goroutine that does not know when these are closed.
func descriptors(files ...*os.File) (fds []int) {
	for _, file := range files {
		fds = append(fds, int(file.Fd()))
	}
	return fds
}

func send(conn *net.UnixConn, fds []int) {
	_, _, _ = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil) // the other end says what has arrived
}

// null opens /dev/null until the test ends.
func null(t *testing.T) *os.File { return opened(t, os.DevNull, os.O_RDWR) }

func opened(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, flags|os.O_CREATE, 0o600)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// TestCallerRefused: a caller can hand over three descriptors that lead no further than to what is read or written. Nothing else starts
// a program.
func TestCallerRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	dir, null := t.TempDir(), null(t)
	folder, err := os.Open(dir)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = folder.Close() })
	place, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	testkit.Must(t, err)
	placed := os.NewFile(uintptr(place), "place")
	t.Cleanup(func() { _ = placed.Close() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = tcp.Close() })
	network, err := tcp.(*net.TCPListener).File()
	testkit.Must(t, err)
	t.Cleanup(func() { _ = network.Close() })
	named, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "kernel.sock"), Net: "unix"})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = named.Close() })
	dialed, err := net.DialUnix("unix", nil, named.Addr().(*net.UnixAddr))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = dialed.Close() })
	kernel, err := dialed.File()
	testkit.Must(t, err)
	t.Cleanup(func() { _ = kernel.Close() })
	datagrams, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	datagram := os.NewFile(uintptr(datagrams[0]), "datagrams")
	t.Cleanup(func() { _, _ = datagram.Close(), unix.Close(datagrams[1]) })
	for name, tt := range map[string]struct {
		files []*os.File
		says  string
	}{
		"none":                {nil, "0 descriptors"},
		"two":                 {[]*os.File{null, null}, "2 descriptors"},
		"four":                {[]*os.File{null, null, null, null}, "4 descriptors"},
		"thirty":              {slices.Repeat([]*os.File{null}, 30), "descriptors"},
		"a directory":         {[]*os.File{folder, null, null}, "is a directory"},
		"a place":             {[]*os.File{null, placed, null}, "O_PATH"},
		"the network":         {[]*os.File{network, null, null}, "socket of the network"},
		"the kernel's socket": {[]*os.File{null, null, kernel}, "or with a name"},
		"a pair of datagrams": {[]*os.File{datagram, null, null}, "or with a name"},
		"the master":          {[]*os.File{opened(t, "/dev/ptmx", os.O_RDWR|unix.O_NOCTTY), null, null}, "is the device 5:2"},
	} {
		c := shell(t, "exit 0")
		c.Stdio = handsOver(t, tt.files...)
		_, err := h.Start(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, path := range map[string]string{
		"nobody":          filepath.Join(dir, "nothing"),
		"one that leaves": calls(t, func(conn *net.UnixConn) { _ = conn.Close() }),
	} {
		c := shell(t, "exit 0")
		c.Stdio = path
		if _, err := h.Start(t.Context(), c); err == nil {
			t.Errorf("%s: it starts", name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := shell(t, "exit 0")
	c.Stdio = calls(t, func(conn *net.UnixConn) {
		_, _ = conn.Read(make([]byte, 1)) // and hands over nothing
		_ = conn.Close()
	})
	_, err = h.Start(ctx, c)
	if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() { // of the connection, or of what is read from it
		t.Errorf("one that is silent: %v", err)
	}
}

// TestCaller: signals of a caller reach the program, those of no use do not, and its end ends the program with all that it has started.
func TestCaller(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	testkit.Must(t, err)
	hungUp := make(chan struct{})
	c := shell(t, `trap "echo USR1" USR1; sleep 1000 & echo ready; while :; do sleep 0.05; done`)
	c.Grace = time.Minute
	fds := descriptors(null(t), out, out)
	c.Stdio = calls(t, func(conn *net.UnixConn) {
		send(conn, fds)
		_ = out.Close()
		_, _ = conn.Write([]byte{0, 255, byte(syscall.SIGKILL), byte(syscall.SIGSEGV)}) // not forwarded
		<-hungUp
		_, _ = conn.Write([]byte{byte(syscall.SIGUSR1)})
		said := make([]byte, len("USR1\n"))
		if _, err := io.ReadFull(in, said); err != nil || string(said) != "USR1\n" {
			t.Errorf("%q, %v", said, err)
		}
		_ = conn.Close()
	})
	p := start(t, open(t), c)
	said := make([]byte, len("ready\n"))
	_, err = io.ReadFull(in, said)
	testkit.Must(t, err)
	close(hungUp)
	if exit := wait(t, p); exit.Signal != syscall.SIGHUP {
		t.Errorf("%v", exit)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 { // nobody has the other end
		t.Errorf("%q, %v", rest, err)
	}
	testkit.Must(t, in.Close())
}

// TestCallerFile: a file that was handed over for reading stays as it is, although the program owns it and can open it again, with each of
// the means that the machine has.
func TestCallerFile(t *testing.T) {
	t.Parallel()
	h := open(t)
	weaker := host.MeansOf(h)
	weaker.ABI = 0
	for name, means := range map[string]host.Means{"all": host.MeansOf(h), "no Landlock": weaker} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, log := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			testkit.Must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
			c := shell(t, `cat; (echo x >/proc/self/fd/0) 2>/dev/null; exit 3`)
			out := opened(t, log, os.O_WRONLY|os.O_APPEND)
			c.Stdio = handsOver(t, opened(t, path, os.O_RDONLY), out, out)
			p, err := host.StartAt(t.Context(), h, c, means)
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			if exit := wait(t, p); exit.Code != 3 {
				t.Errorf("%v", exit)
			}
			if in, got := testkit.ReadFile(t, path), testkit.ReadFile(t, log); string(in) != "one\ntwo\n" || string(got) != "one\ntwo\n" {
				t.Errorf("the file is %q, the program read %q", in, got)
			}
		})
	}
}

package host_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// dialUnix is an agent that waits for a line, then sends to Unix sockets: a kind and a path each.
func dialUnix(args []string) int {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 1
	}
	for i := 0; i+1 < len(args); i += 2 {
		said(args[i], sendUnix(args[i], args[i+1]))
	}
	return 0
}

// ownUnix is an agent that connects its own sockets with each other: Unix sockets of each kind at relative, absolute and
// long paths, and those of other families, with a call that does not wait and with one that does.
func ownUnix([]string) int {
	work, err := os.Getwd()
	if err != nil {
		return 1
	}
	long := strings.Repeat("long/", 40)
	if err := errors.Join(os.MkdirAll(long, 0o700), os.Chdir(long)); err != nil {
		return 1
	}
	addresses := []struct{ network, at string }{
		{"unix", "relative"},
		{"unixpacket", "relative-packets"},
		{"unix", "/tmp/absolute"},
		{"unix", filepath.Join(work, "absolute")},
		{"unix", "@abstract"},
		{"tcp", "127.0.0.1:0"},
		{"tcp", "[::1]:0"},
	}
	for _, a := range addresses {
		l, err := net.Listen(a.network, a.at)
		if err != nil {
			said(a.network+" "+a.at, err)
			continue
		}
		go answer(l)
		said(a.network+" "+a.at, ask(func() (net.Conn, error) { return net.Dial(a.network, l.Addr().String()) }))
		said(a.network+" "+a.at+", waiting", ask(func() (net.Conn, error) { return dialWaiting(l.Addr()) }))
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		_, err = unix.Write(pair[0], []byte("x"))
	}
	said("pair", err)
	said("missing", sendUnix("unix", "missing"))
	return 0
}

// answer sends one byte over each connection.
func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("x")) // the other end reports a missing answer
		_ = conn.Close()
	}
}

// ask reads one byte over a connection.
func ask(dial func() (net.Conn, error)) error {
	conn, err := dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// dialWaiting connects a blocking socket, as C programs do.
func dialWaiting(to net.Addr) (net.Conn, error) {
	var at unix.Sockaddr
	family, kind := unix.AF_UNIX, unix.SOCK_STREAM
	switch to := to.(type) {
	case *net.UnixAddr:
		at = &unix.SockaddrUnix{Name: to.Name}
		if to.Net == "unixpacket" {
			kind = unix.SOCK_SEQPACKET
		}
	case *net.TCPAddr:
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP.To16())}
		if to.IP.To4() != nil {
			family, at = unix.AF_INET, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
		}
	}
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, at); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

func sendUnix(kind, path string) error {
	conn, err := net.Dial(kind, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// unixKinds are the kinds of Unix sockets.
func unixKinds() []string { return []string{"unix", "unixpacket", "unixgram"} }

// serveUnix opens a Unix socket of each kind in a directory: name, a hyphen and the kind.
func serveUnix(dir, name string) (closeAll func(), err error) {
	var open []io.Closer
	closeAll = func() {
		for _, c := range open {
			_ = c.Close() // its file may be under another name
		}
	}
	for _, kind := range unixKinds() {
		var c io.Closer
		if path := filepath.Join(dir, name+"-"+kind); kind == "unixgram" {
			c, err = net.ListenPacket(kind, path)
		} else {
			c, err = net.Listen(kind, path)
		}
		if err != nil {
			closeAll()
			return nil, err
		}
		open = append(open, c)
	}
	return closeAll, nil
}

// openUnix is serveUnix until the test ends. It returns arguments for dialUnix.
func openUnix(t *testing.T, dir, name string) (args []string) {
	t.Helper()
	closeAll, err := serveUnix(dir, name)
	testkit.Must(t, err)
	t.Cleanup(closeAll)
	for _, kind := range unixKinds() {
		path := filepath.Join(dir, name+"-"+kind)
		testkit.Must(t, sendUnix(kind, path))
		args = append(args, kind, path)
	}
	return args
}

// TestUnixSockets: a program reaches no Unix socket of another program in its working directory, in a directory of --write,
// through a link or under a relative name, whether the socket was there at its start or was made later.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for name, take := range map[string]func(*host.Means){
		"all":           func(*host.Means) {},
		"no namespaces": func(m *host.Means) { *m = host.Means{ABI: m.ABI, Filter: true, Notify: m.Notify} },
	} {
		for _, net := range []host.Net{host.NetNone, host.NetOpen} {
			t.Run(name+" "+string(net), func(t *testing.T) {
				t.Parallel()
				has := host.MeansOf(h)
				take(&has)
				work, more := shared(t), shared(t)
				args := append(openUnix(t, work, "before"), openUnix(t, more, "before")...)
				args = append(args, openUnix(t, work, "later")...)
				args = append(args, "unix", "before-unix", "unix", "link")
				testkit.Must(t, os.Symlink(filepath.Join(more, "before-unix"), filepath.Join(work, "link")))
				c := helper(t, append([]string{"t-unix"}, args...)...)
				c.Dir, c.Write, c.Net = work, []string{more}, net
				p, err := host.StartAt(t.Context(), h, c, has)
				testkit.Must(t, err)
				t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
				openUnix(t, work, "started")
				testkit.Must(t, os.Rename(filepath.Join(work, "started-unix"), filepath.Join(work, "later-unix")))
				_, err = p.Conn().Write([]byte("\n"))
				testkit.Must(t, err)
				got := outcomes(all(t, p))
				if len(got) != len(args)/2 {
					t.Fatalf("%d outcomes of %d", len(got), len(args)/2)
				}
				for i, ok := range got {
					if ok {
						t.Errorf("the program has reached %s", args[2*i+1])
					}
				}
			})
		}
	}
}

// TestMasks: where the daemon cannot carry out the connects of programs, the sockets that are there at the start are
// masked.
func TestMasks(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	has := host.MeansOf(h)
	has.Notify, has.ABI = false, min(has.ABI, 8)
	work, more := shared(t), shared(t)
	args := append(openUnix(t, work, "before"), openUnix(t, more, "more")...)
	c := helper(t, append([]string{"t-unix"}, args...)...)
	c.Dir, c.Write = work, []string{more}
	p, err := host.StartAt(t.Context(), h, c, has)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
	_, err = p.Conn().Write([]byte("\n"))
	testkit.Must(t, err)
	for i, ok := range outcomes(all(t, p)) {
		if ok {
			t.Errorf("the program has reached %s", args[2*i+1])
		}
	}
}

// TestOwnSockets: a program connects its own sockets with each other.
func TestOwnSockets(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for _, net := range []host.Net{host.NetNone, host.NetKernel, host.NetOpen} {
		c := helper(t, "t-unix-own")
		c.Dir, c.Net = shared(t), net
		p := start(t, h, c)
		text := all(t, p)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 16 || strings.Count(text, ": ok\n") != 15 || !strings.HasSuffix(text, "missing: dial unix missing: connect: no such file or directory\n") {
			t.Errorf("%s: got\n%s", net, text)
		}
	}
}

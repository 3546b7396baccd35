package host_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// servePorts listens on each address, and keeps it; it dials those that begin with "dial:", and waits for a byte.
func servePorts(args []string) int {
	for _, address := range args {
		if to, dial := strings.CutPrefix(address, "dial:"); dial {
			conn, err := net.Dial("tcp", to)
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			said("dial", err)
			continue
		}
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp"
		}
		_, err := net.Listen(network, address)
		said(address, err)
	}
	return 0
}

// TestOwnPorts: a program may listen on every port of its network, also on one that leads to a name outside, on all
// addresses, while connections to names still arrive; where the relays are in its own network, their ports alone are taken.
func TestOwnPorts(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	addresses := []string{"0.0.0.0:8443", "[::]:443", "[::1]:8443", "127.0.0.1:80", "0.0.0.0:3000", "[::]:22"}
	for name, tt := range map[string]struct {
		link bool
		want []bool
	}{
		"relays apart": {true, []bool{true, true, true, true, true, true}},
		"relays among": {false, []bool{false, false, true, false, true, false}},
	} {
		has := host.MeansOf(h)
		if tt.link && !has.Link {
			continue // a gap
		}
		has.Link = tt.link
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := helper(t, append(append([]string{"t-ports"}, addresses...), "dial:198.18.77.5:8443", "dial:198.18.77.5:443")...)
			c.Ports = []uint16{8443}
			served := make(chan error, 1)
			c.Network = func(_ *host.Process, s *host.Sockets) error {
				go func() { served <- errors.Join(greet(s.Relay[2]), greet(s.Relay[1]), s.Close()) }()
				return nil
			}
			p, err := host.StartAt(t.Context(), h, c, has)
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			text := all(t, p)
			got := outcomes(text)
			if want := append(slices.Clone(tt.want), true, true); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v:\n%s", got, want, text)
			}
			testkit.Must(t, <-served)
		})
	}
}

// greet answers a connection to a name with a byte.
func greet(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(conn.LocalAddr().String(), "198.18.77.5:") {
		err = fmt.Errorf("the destination is %s", conn.LocalAddr())
	}
	_, writeErr := conn.Write([]byte("x"))
	return errors.Join(err, writeErr, conn.Close())
}

// TestPublished: the daemon connects to servers of a program on either address of localhost, any number of times, and its
// services are there on both. What the program does to the daemon's listener breaks nothing.
func TestPublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	got := make(chan *host.Sockets, 1)
	c := helper(t, "t-echo", "127.0.0.1:3000", "[::1]:3001")
	c.Publishes, c.Locals = true, []uint16{5432}
	c.Network = func(_ *host.Process, s *host.Sockets) error { got <- s; return nil }
	p := start(t, h, c)
	s := <-got
	defer func() { testkit.Must(t, s.Close()) }()
	readLine(t, p, "listening")
	six := len(s.Locals) == 2
	for range 3 {
		for port, there := range map[uint16]bool{3000: true, 3001: six, 3002: false} {
			conn, err := s.Dialer.Dial(t.Context(), port)
			if !there {
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("port %d: %v", port, err)
				}
				continue
			}
			testkit.Must(t, err)
			if from, _, _ := net.SplitHostPort(conn.LocalAddr().String()); from != "127.0.0.1" && from != "::1" {
				t.Errorf("the server sees a client at %s", from)
			}
			testkit.Must(t, conn.SetDeadline(time.Now().Add(bound)))
			_, err = conn.Write([]byte("hello"))
			testkit.Must(t, errors.Join(err, conn.(*net.TCPConn).CloseWrite()))
			if text, err := io.ReadAll(conn); string(text) != "hello" || err != nil {
				t.Errorf("port %d answers %q, %v", port, text, err)
			}
			testkit.Must(t, conn.Close())
		}
	}
	go func() {
		for _, l := range s.Locals {
			conn, err := l.Accept()
			if err == nil {
				_, _ = conn.Write([]byte(l.Addr().String()))
				_ = conn.Close()
			}
		}
	}()
	_, err := p.Conn().Write([]byte("\n"))
	testkit.Must(t, err)
	for _, l := range s.Locals {
		readLine(t, p, l.Addr().String())
	}
	testkit.Must(t, p.Terminate(t.Context(), 0))
}

// echoServer serves addresses, and disturbs the daemon's listener. After a line of input it prints what the services of localhost
// say.
func echoServer(args []string) int {
	for _, address := range args {
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // without IPv6
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(conn, conn)
					_ = conn.Close()
				}()
			}
		}()
	}
	var kept []net.Conn
	for range 20 {
		if conn, err := net.Dial("tcp", "127.0.0.1:900"); err == nil {
			kept = append(kept, conn)
		}
	}
	fmt.Println("listening")
	_, _ = os.Stdin.Read(make([]byte, 1))
	for _, address := range []string{"127.0.0.1:5432", "[::1]:5432"} {
		if conn, err := net.Dial("tcp", address); err == nil {
			text, _ := io.ReadAll(conn)
			fmt.Println(string(text))
		}
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	runtime.KeepAlive(kept)
	return 0
}

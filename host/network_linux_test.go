package host_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestNetwork: the sockets of a program's network are sent before it runs, its connections arrive there with their
// destination, names are queried at 127.0.0.1, and its environment has proxy and upstreams.
func TestNetwork(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	got := make(chan *host.Sockets, 1)
	c := shell(t, `grep nameserver /etc/resolv.conf; grep -v "$(hostname)" /etc/hosts; echo "$PWOS_UPSTREAM_MY_API $https_proxy"; read x`)
	c.Upstreams, c.Ports = []string{"my-api"}, []uint16{8443, 80, 901}
	c.Network = func(_ *host.Process, s *host.Sockets) error { got <- s; return nil }
	p := start(t, h, c)
	s := <-got
	defer func() { testkit.Must(t, s.Close()) }()
	addresses := []string{s.Proxy.Addr().String(), s.DNS.LocalAddr().String(), s.DNSTCP.Addr().String(), s.Upstreams["my-api"].Addr().String()}
	for _, l := range s.Relay {
		addresses = append(addresses, l.Addr().String())
	}
	want := "127.0.0.1:901 127.0.0.1:53 127.0.0.1:53 127.0.0.1:902 0.0.0.0:80 0.0.0.0:443 0.0.0.0:8443"
	if host.MeansOf(h).Link { // where the proxy is not
		want += " 0.0.0.0:901"
	}
	if strings.Join(addresses, " ") != want {
		t.Errorf("got %q, want %q", addresses, want)
	}
	readLine(t, p, "nameserver 127.0.0.1")
	readLine(t, p, "127.0.0.1 localhost")
	readLine(t, p, "::1 localhost ip6-localhost ip6-loopback")
	readLine(t, p, "http://127.0.0.1:902 http://127.0.0.1:901")
	testkit.Must(t, p.Terminate(t.Context(), 0))

	self, err := os.Executable()
	testkit.Must(t, err)
	c = shell(t, `exec "$0" t-dial 198.18.77.5:8443`)
	c.Argv, c.Ports = []string{self, "t-dial", "198.18.77.5:8443"}, []uint16{8443}
	c.Network = func(_ *host.Process, s *host.Sockets) error { got <- s; return nil }
	start(t, h, c)
	other := <-got
	defer func() { testkit.Must(t, other.Close()) }()
	conn, err := other.Relay[2].Accept()
	testkit.Must(t, err)
	defer conn.Close()
	if at := conn.LocalAddr().String(); at != "198.18.77.5:8443" {
		t.Errorf("the destination is %s", at)
	}
}

// TestNetworkRefused: a program whose network cannot be served does not start.
func TestNetworkRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	c := shell(t, "echo ran >ran")
	wrong := errors.New("nobody serves it")
	c.Network = func(*host.Process, *host.Sockets) error { return wrong }
	p, err := h.Start(t.Context(), c)
	if _, statErr := os.Stat(filepath.Join(c.Dir, "ran")); p != nil || !errors.Is(err, wrong) || statErr == nil {
		t.Errorf("started %v, %v, %v", p, err, statErr)
	}
}

// dialOut connects to an address, if asked to with an IPv6 socket, and waits for the end of the connection.
func dialOut(args []string) int {
	to := netip.MustParseAddrPort(args[0])
	var at unix.Sockaddr = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	family := unix.AF_INET
	if len(args) > 1 {
		at, family = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}, unix.AF_INET6
	}
	socket, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Connect(socket, at)
	}
	said("dial", err)
	if err == nil {
		_, _ = unix.Read(socket, make([]byte, 1)) // until the other side closes it
		_ = unix.Close(socket)
	}
	return 0
}

// TestMaker: who made a connection is the process that has its socket, of IPv4 or of IPv6. It, and what it descends from, were
// started in their order. Of a connection whose process has ended nothing is known.
func TestMaker(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	self := testkit.Value(os.Executable())(t)
	for _, family := range []string{"", "IPv6"} {
		got := make(chan *host.Sockets, 1)
		c := shell(t, `sleep 0.05; "$1" t-dial 198.18.77.5:8443 $2 & child=$!; read x; kill $child; wait $child; echo killed; read x`, self, family)
		c.Ports = []uint16{8443}
		c.Network = func(_ *host.Process, s *host.Sockets) error { got <- s; return nil }
		began := time.Now()
		p := start(t, h, c)
		s := <-got
		defer func() { testkit.Must(t, s.Close()) }()
		conn := testkit.Value(s.Relay[2].Accept())(t)
		defer conn.Close()
		readLine(t, p, "dial: ok")
		client, server := netip.MustParseAddrPort(conn.RemoteAddr().String()), netip.MustParseAddrPort(conn.LocalAddr().String())
		program, started, ok := p.Maker(client, server)
		const accuracy = 20 * time.Millisecond // two ticks
		if !ok || program != self || len(started) != 2 || started[1].Sub(started[0]) < 50*time.Millisecond-accuracy ||
			started[0].Before(began.Add(-accuracy)) || started[1].After(time.Now()) {
			t.Errorf("%s: made by %s, %v, started %v, after %v", family, program, ok, started, began)
		}
		_, err := io.WriteString(p.Conn(), "x\n")
		testkit.Must(t, err)
		readLine(t, p, "killed")
		if program, _, ok := p.Maker(client, server); ok {
			t.Errorf("%s: what nobody has any more is made by %s", family, program)
		}
	}
}

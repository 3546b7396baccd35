package host_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

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

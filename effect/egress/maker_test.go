package egress_test

import (
	"io"
	"net/netip"
	"testing"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestMaker: each entry of a connection, allowed or refused, has who made it, which is found by both of its ends.
func TestMaker(t *testing.T) {
	t.Parallel()
	asked := make(chan [2]netip.AddrPort, 8)
	h := open(t, func(c *egress.Config) {
		c.Maker = func(pid int64, client, server netip.AddrPort) schema.NetMaker {
			asked <- [...]netip.AddrPort{client, server}
			return schema.NetMaker{Program: "/bin/x", Step: "a:1"}
		}
	})
	h.grant([]string{"allowed.test"})
	h.at("allowed.test:443", newEcho(t, nil).Addr().String())
	for _, authority := range []string{"allowed.test:443", "other.test:443"} {
		conn := h.dialProxy()
		_, err := io.WriteString(conn, "CONNECT "+authority+" HTTP/1.1\r\nHost: "+authority+"\r\n\r\n")
		testkit.Must(t, err)
		ends := testkit.Receive(t, asked, "who made the connection is asked")
		if ends[0].String() != conn.LocalAddr().String() || ends[1].String() != conn.RemoteAddr().String() {
			t.Errorf("asked about %v, not %s to %s", ends, conn.LocalAddr(), conn.RemoteAddr())
		}
		_ = conn.Close()
	}
	conn := h.to("allowed.test", 443)
	_, err := io.WriteString(conn, "no TLS at all")
	testkit.Must(t, err)
	testkit.Receive(t, asked, "who made a relayed connection is asked")
	for _, e := range h.await(3) {
		if in := e.in.(*schema.NetConnectInput); in.NetMaker != (schema.NetMaker{Program: "/bin/x", Step: "a:1"}) {
			t.Errorf("entry with another maker: %+v", in)
		}
	}
}

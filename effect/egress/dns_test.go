package egress_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLookup checks that an allowed name has an address, and that any other name does not exist.
func TestLookup(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.grant([]string{"allowed.test", "*.wild.test", "raw.test:7000", "192.0.2.1"})
	tests := []struct {
		name  string
		typ   dnsmessage.Type
		addrs int
		code  dnsmessage.RCode
	}{
		{"allowed.test", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"AlloWED.Test", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"raw.test", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"a.b.wild.test", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"allowed.test", dnsmessage.TypeAAAA, 0, dnsmessage.RCodeSuccess},
		{"allowed.test", dnsmessage.TypeMX, 0, dnsmessage.RCodeSuccess},
		{"allowed.test", dnsmessage.Type(65), 0, dnsmessage.RCodeSuccess},
		{"wild.test", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"other.test", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"allowed.test.evil.test", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"192.0.2.1", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"1.0.18.198.in-addr.arpa", dnsmessage.TypePTR, 0, dnsmessage.RCodeNameError},
		{"secret-data-in-a-label.evil.test", dnsmessage.TypeTXT, 0, dnsmessage.RCodeNameError},
		{"a b.test", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"b\xc3\xbccher.test", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
	}
	for _, tt := range tests {
		addrs, code := h.lookup(tt.name, tt.typ)
		if len(addrs) != tt.addrs || code != tt.code {
			t.Errorf("%s %v: %v, %v", tt.name, tt.typ, addrs, code)
		}
		for _, a := range addrs {
			if b := a.As4(); b[0] != 198 || b[1]&^1 != 18 {
				t.Errorf("%s is at %v, outside of the agent's network", tt.name, a)
			}
		}
	}
	if dials := h.dials(); len(dials) > 0 {
		t.Errorf("a lookup has dialled %v", dials)
	}
	first, _ := h.lookup("allowed.test", dnsmessage.TypeA)
	again, _ := h.lookup("ALLOWED.test", dnsmessage.TypeA)
	if first[0] != again[0] {
		t.Errorf("the address of a name has changed from %v to %v", first, again)
	}
}

// TestMissIsOneEntry checks that repeated queries for a refused name are journaled once, with a fix.
func TestMissIsOneEntry(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 5 {
		h.lookup("other.test", dnsmessage.TypeA)
		h.lookup("Other.Test", dnsmessage.TypeAAAA)
	}
	h.lookup("last.test", dnsmessage.TypeA)
	list := h.await(2)
	if len(list) != 2 {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	for _, e := range list {
		if e.err == nil || e.err.Code() != 403 || !strings.Contains(e.err.Text(), `"pwos cap grant 7 --add Http.Fetch --host `) {
			t.Errorf("entry %+v", e)
		}
	}
}

// TestMissesAreBounded checks that the number of journaled refused names is limited.
func TestMissesAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 300 {
		h.lookup(strings.Repeat("x", i%60+1)+"."+string(rune('a'+i/60))+".test", dnsmessage.TypeA)
	}
	h.stop()
	if n := len(h.await(1)); n > 64 {
		t.Errorf("%d entries", n)
	}
}

// TestNamesAreBounded checks that the oldest name is dropped beyond the limit, and that its address is then not connected.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.grant([]string{"*"})
	first, _ := h.lookup("first.test", dnsmessage.TypeA)
	for i := range 8192 {
		h.lookup(string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))+".test", dnsmessage.TypeA)
	}
	if left := closed(t, h.connect(first[0], 443)); left != "" {
		t.Errorf("a forgotten address answers %q", left)
	}
	if again, _ := h.lookup("first.test", dnsmessage.TypeA); again[0] == first[0] {
		t.Error("a forgotten name has its address again at once")
	}
}

// TestMalformed checks that a malformed query gets an error or no answer, and that the next query is answered.
func TestMalformed(t *testing.T) {
	t.Parallel()
	h := open(t)
	good := query(t, "allowed.test", dnsmessage.TypeA)
	edit := func(change func(m *dnsmessage.Message)) []byte {
		var m dnsmessage.Message
		testkit.Must(t, m.Unpack(good))
		change(&m)
		raw, err := m.Pack()
		testkit.Must(t, err)
		return raw
	}
	tests := []struct {
		name string
		raw  []byte
		code int // -1: no answer
	}{
		{"empty", nil, -1},
		{"short", good[:5], -1},
		{"no question", good[:12], int(dnsmessage.RCodeFormatError)},
		{"an answer", edit(func(m *dnsmessage.Message) { m.Response = true }), -1},
		{"another operation", edit(func(m *dnsmessage.Message) { m.OpCode = 4 }), int(dnsmessage.RCodeNotImplemented)},
		{"another class", edit(func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), int(dnsmessage.RCodeRefused)},
		{"two questions", edit(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), int(dnsmessage.RCodeFormatError)},
		{"a name that points at itself", append(append([]byte{}, good[:12]...), 0xc0, 12, 0, 1, 0, 1), int(dnsmessage.RCodeFormatError)},
	}
	for _, tt := range tests {
		conn, err := net.Dial("udp", h.dns)
		testkit.Must(t, err)
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = conn.Write(tt.raw)
		testkit.Must(t, err)
		if tt.code < 0 {
			_, err = conn.Write(good) // only this is answered
			testkit.Must(t, err)
		}
		buf := make([]byte, 1500)
		n, err := conn.Read(buf)
		testkit.Must(t, err)
		var m dnsmessage.Message
		testkit.Must(t, m.Unpack(buf[:n]))
		if want := max(tt.code, 0); int(m.RCode) != want || !m.Response || n > len(tt.raw)+len(good)+32 {
			t.Errorf("%s: %+v", tt.name, m)
		}
		_ = conn.Close()
	}
}

// TestDNSOverTCP checks that a TCP connection can have several queries, and is closed at an invalid length.
func TestDNSOverTCP(t *testing.T) {
	t.Parallel()
	h := open(t)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", h.dnsTCP)
		testkit.Must(t, err)
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	frame := func(length int, raw []byte) []byte {
		return append(binary.BigEndian.AppendUint16(nil, uint16(length)), raw...)
	}
	good := query(t, "allowed.test", dnsmessage.TypeA)
	conn := dial()
	for range 2 {
		_, err := conn.Write(frame(len(good), good))
		testkit.Must(t, err)
		var size [2]byte
		_, err = io.ReadFull(conn, size[:])
		testkit.Must(t, err)
		raw := make([]byte, binary.BigEndian.Uint16(size[:]))
		_, err = io.ReadFull(conn, raw)
		testkit.Must(t, err)
		if addrs, _ := answers(t, raw, "allowed.test"); len(addrs) != 1 {
			t.Errorf("answered with %v", addrs)
		}
	}
	for name, lie := range map[string][]byte{
		"nothing": frame(0, good), "too much": frame(65535, good), "too little": frame(10, good[:10]),
	} {
		conn := dial()
		_, err := conn.Write(lie)
		testkit.Must(t, err)
		if left := closed(t, conn); left != "" {
			t.Errorf("%s: answered %q", name, left)
		}
	}
	short := dial()
	_, err := short.Write(frame(len(good)+10, good))
	testkit.Must(t, err)
	testkit.Must(t, short.(*net.TCPConn).CloseWrite())
	if left := closed(t, short); left != "" {
		t.Errorf("a query shorter than its stated length was answered with %q", left)
	}
}

package tlssock_test

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/tlssock"
)

func decodeBase64(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

// TestHostilePeers: each peer that is no client has one outcome, and the kernel goes on.
func TestHostilePeers(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	address := strings.TrimPrefix(k.name, "tls://")
	sends := func(text string) func(*testing.T) {
		return func(t *testing.T) {
			conn := testkit.Value(net.Dial("tcp", address))(t)
			testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
			defer conn.Close()
			_, _ = io.WriteString(conn, text) // the kernel may have closed
			_, err := io.ReadAll(conn)
			if errors.As(err, new(net.Error)) && err.(net.Error).Timeout() {
				t.Error("the connection stays open")
			}
		}
	}
	for name, attack := range map[string]func(*testing.T){
		"plain HTTP":        sends("GET / HTTP/1.1\r\nHost: kernel\r\n\r\n"),
		"lines without TLS": sends(`{"kind":"query","type":"Syscall.Ping","data":{},"metadata":{"id":"a","timestamp":0}}` + "\n"),
		"zeros":             sends(strings.Repeat("\x00", 1<<16)),
		"a record too long": sends("\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<17)),
		"nothing, slowly":   sends(""), // until access.AuthTimeout
		"a hello cut short": func(t *testing.T) {
			conn := testkit.Value(net.Dial("tcp", address))(t)
			testkit.Value(io.WriteString(conn, "\x16\x03\x01\x02\x00\x01"))(t)
			testkit.Must(t, conn.(*net.TCPConn).SetLinger(0))
			testkit.Must(t, conn.Close())
		},
		"a byte at a time": func(t *testing.T) {
			conn := testkit.Value(net.Dial("tcp", address))(t)
			defer conn.Close()
			for range 2 * access.AuthTimeout / time.Second {
				if _, err := conn.Write([]byte("\x16")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
			t.Error("the connection stays open")
		},
		"TLS 1.2": func(t *testing.T) {
			_, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})
			if err == nil || !strings.Contains(err.Error(), "protocol version") {
				t.Errorf("it is refused with %v", err)
			}
		},
		"a session that never logs in": func(t *testing.T) {
			s, _ := k.dial(t)
			testkit.Must(t, s.SetDeadline(time.Now().Add(testkit.Patience)))
			if _, err := io.ReadAll(s); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("it ends with %v", err)
			}
		},
		"lines too long before the login": func(t *testing.T) {
			s, _ := k.dial(t)
			testkit.Value(s.Next())(t)
			testkit.Value(io.WriteString(s, strings.Repeat("x", 1<<18)+"\n"))(t)
			if line := testkit.Value(s.Next())(t); !strings.Contains(string(line), `"code":413`) {
				t.Errorf("the answer is %s", line)
			}
		},
		"calls before the login": func(t *testing.T) {
			s, _ := k.dial(t)
			testkit.Value(s.Next())(t)
			testkit.Value(io.WriteString(s, `{"kind":"query","type":"Syscall.Ping","data":{},"metadata":{"id":"a","timestamp":0}}`+"\n"))(t)
			if line := testkit.Value(s.Next())(t); !strings.Contains(string(line), `"code":401`) {
				t.Errorf("the answer is %s", line)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack(t)
			k.works(t)
		})
	}
}

// TestCutLine: a line whose session is cut is no frame, unlike one whose session has ended.
func TestCutLine(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(stream *net.TCPConn) error{
		"reset":             func(stream *net.TCPConn) error { return errors.Join(stream.SetLinger(0), stream.Close()) },
		"ended without TLS": func(stream *net.TCPConn) error { return stream.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := start(t, 0, nil)
			s := k.login(t)
			s.asks(t, "whole")
			testkit.Value(io.WriteString(s, "cut"))(t)
			testkit.Must(t, cut(tlssock.StreamOf(s.Conn)))
			k.works(t)
			for _, want := range []string{"whole", "hello"} {
				if line := testkit.Receive(t, k.lines, "a line"); line != want {
					t.Errorf("the kernel takes %q, want %q", line, want)
				}
			}
		})
	}
}

// TestBounds: silent connections of one address have a bound, beyond which they are closed at once, and another address
// logs in beside them.
func TestBounds(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	address := strings.TrimPrefix(k.name, "tls://")
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range tlssock.NetworkWaiting {
		conn, err := other.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Skip("only Linux has all addresses of 127/8: ", err)
		}
		defer conn.Close()
	}
	conn := testkit.Value(other.DialContext(t.Context(), "tcp", address))(t)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.As(err, new(net.Error)) && err.(net.Error).Timeout() {
		t.Errorf("one more than the bound reads %d bytes, %v", n, err)
	}
	k.works(t)
}

// TestFullHouse: with all places taken by silent connections of many addresses, a client that logs in gets one of theirs.
func TestFullHouse(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	address := strings.TrimPrefix(k.name, "tls://")
	for i := range access.AuthWaiting {
		other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/8))}}
		conn, err := other.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Skip("only Linux has all addresses of 127/8: ", err)
		}
		defer conn.Close()
	}
	k.works(t)
}

package fetch_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// over runs a request over a pipe with the fake clock of synctest; play is the server at the other end.
// It returns the exact duration of the request.
func over(t *testing.T, limits fetch.Limits, timeout time.Duration, play func(net.Conn)) (time.Duration, error) {
	t.Helper()
	var servers sync.WaitGroup
	o := fetch.WithDial(fetch.Options{Resolver: always{"93.184.215.14"}, Limits: limits}, func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		servers.Go(func() {
			defer theirs.Close()
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
				play(theirs)
			}
		})
		return ours, nil
	})
	req, _ := spill(fetch.Request{URL: "http://example.com/", Timeout: timeout, Policy: fetch.Policy{Hosts: hosts(t, "*"), PlainHTTP: true}})
	start := time.Now()
	_, err := fetch.New(o).Do(t.Context(), req)
	took := time.Since(start)
	servers.Wait()
	return took, err
}

// drip writes one byte after each pause until the other end is closed.
func drip(conn net.Conn, pause time.Duration) {
	for {
		time.Sleep(pause) // fake clock
		if _, err := conn.Write([]byte("a")); err != nil {
			return
		}
	}
}

// TestTime checks that each kind of slow server is canceled exactly at its limit, with an error that names the limit.
func TestTime(t *testing.T) {
	t.Parallel()
	silence := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }
	begin := func(then func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
			then(conn)
		}
	}
	for name, tc := range map[string]struct {
		limits  fetch.Limits
		timeout time.Duration
		play    func(net.Conn)
		want    time.Duration
		says    string
	}{
		"a byte a second":         {play: begin(func(c net.Conn) { drip(c, time.Second) }), want: 5 * time.Second, says: "did not finish within 5s"},
		"a byte a second, longer": {timeout: 30 * time.Second, play: begin(func(c net.Conn) { drip(c, time.Second) }), want: 30 * time.Second, says: "did not finish within 30s"},
		"stalled":                 {timeout: 30 * time.Second, play: begin(silence), want: 10 * time.Second, says: "stopped sending for 10s"},
		"stalled later": {
			timeout: 30 * time.Second,
			play:    begin(func(c net.Conn) { time.Sleep(9 * time.Second); _, _ = c.Write([]byte("a")); silence(c) }),
			want:    19 * time.Second, says: "stopped sending for 10s",
		},
		"slow bytes":     {timeout: 30 * time.Second, limits: fetch.Limits{Idle: 3 * time.Second}, play: begin(func(c net.Conn) { drip(c, 4*time.Second) }), want: 3 * time.Second, says: "stopped sending for 3s"},
		"no answer":      {timeout: 30 * time.Second, play: silence, want: 10 * time.Second, says: "did not begin to answer within 10s"},
		"no answer soon": {timeout: time.Second, play: silence, want: time.Second, says: "did not finish within 1s"},
		"dripping header": {timeout: 30 * time.Second, play: func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			drip(c, time.Second)
		}, want: 10 * time.Second, says: "did not begin to answer"},
		"endless preliminaries": {timeout: 30 * time.Second, play: func(c net.Conn) {
			for {
				time.Sleep(time.Second)
				if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
					return
				}
			}
		}, want: 10 * time.Second, says: "did not begin to answer"},
		"redirects": {timeout: 30 * time.Second, play: func(c net.Conn) {
			time.Sleep(9 * time.Second)
			_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
		}, want: 30 * time.Second, says: "did not finish within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, err := over(t, tc.limits, tc.timeout, tc.play)
				want(t, err, fault.HTTPTimeout, "example.com", tc.says)
				if took != tc.want {
					t.Errorf("took %v, want %v", took, tc.want)
				}
			})
		})
	}
}

// TestSlowIsNoError checks that a server that is slow within the limits succeeds, and that the time of the caller's writer does not
// count.
func TestSlowIsNoError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := over(t, fetch.Limits{}, 30*time.Second, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
			for range 3 {
				time.Sleep(9 * time.Second)
				_, _ = io.WriteString(c, "a")
			}
		})
		testkit.Must(t, err)
	})
	synctest.Test(t, func(t *testing.T) {
		o := fetch.WithDial(fetch.Options{Resolver: always{"93.184.215.14"}, Limits: fetch.Limits{InlineBytes: 10}}, func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = http.ReadRequest(bufio.NewReader(theirs))
				_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+strings.Repeat("a", 100))
				_, _ = theirs.Read(make([]byte, 1))
				_ = theirs.Close()
			}()
			return ours, nil
		})
		req := fetch.Request{URL: "http://example.com/", Timeout: 30 * time.Second, Policy: fetch.Policy{Hosts: hosts(t, "*"), PlainHTTP: true}}
		req.Spill = func() (io.Writer, error) { time.Sleep(12 * time.Second); return io.Discard, nil }
		resp, err := fetch.New(o).Do(t.Context(), req)
		testkit.Must(t, err)
		if resp.Size != 100 {
			t.Errorf("%d bytes", resp.Size)
		}
	})
}

// TestSlowConnection checks that lookup and connect count against the time limit, and that an address that does not answer leaves time
// for the next one.
func TestSlowConnection(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	req := func(t *testing.T) fetch.Request {
		return fetch.Request{URL: "https://example.com/", Timeout: 8 * time.Second, Policy: fetch.Policy{Hosts: hosts(t, "*")}}
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := fetch.New(fetch.WithDial(fetch.Options{Resolver: always{"93.184.215.14"}}, hang)).Do(t.Context(), req(t))
		want(t, err, fault.HTTPTimeout, "did not finish within 8s")
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, err := fetch.New(fetch.Options{Resolver: stuck{}}).Do(t.Context(), req(t))
		want(t, err, fault.HTTPTimeout, "did not finish within 8s")
	})
	synctest.Test(t, func(t *testing.T) {
		var tried []string
		o := fetch.WithDial(fetch.Options{Resolver: always{"93.184.215.14", "93.184.215.15", "93.184.215.16"}}, func(ctx context.Context, network, address string) (net.Conn, error) {
			if tried = append(tried, address); len(tried) < 3 {
				return hang(ctx, network, address)
			}
			return nil, net.ErrClosed
		})
		start := time.Now()
		_, err := fetch.New(o).Do(t.Context(), req(t))
		want(t, err, fault.Upstream)
		if took := time.Since(start); len(tried) != 3 || took != 6*time.Second {
			t.Errorf("tried %q in %v", tried, took)
		}
	})
}

type stuck struct{}

func (stuck) LookupNetIP(ctx context.Context, _, _ string) (_ []netip.Addr, err error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCallersTime checks the error of a call whose context has exceeded its deadline.
func TestCallersTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := fetch.New(fetch.Options{Resolver: stuck{}}).Do(ctx, fetch.Request{URL: "https://example.com/", Policy: fetch.Policy{Hosts: hosts(t, "*")}})
		want(t, err, fault.HTTPTimeout, "the caller's time was up")
	})
}

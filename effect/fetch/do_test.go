package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestExchange checks that the request is sent, and the answer returned, unchanged over HTTP/2 with a verified server.
func TestExchange(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["X-Two"] = []string{"1", "2"}
		w.Header()["Set-Cookie"] = []string{"a=1, b", "c=2"}
		w.Header().Set("Date", "now")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s %q %s %s", r.Proto, r.Method, r.URL, r.Host, body, r.Header.Get("X-Mine"), r.UserAgent())
	})
	req := get(t, strings.Replace(s.at("/p%2Fq/../é?a=b%20c#frag"), "example.com", "EXAMPLE.com", 1))
	req.Method, req.Body, req.Headers = "PATCH", fetch.Bytes([]byte("hello")), map[string]string{"x-mine": "é 1"}
	resp, err := do(t, s.options(t), req)
	testkit.Must(t, err)
	text := "HTTP/2.0 PATCH /p%2Fq/../%C3%A9?a=b%20c example.com:" + s.port + ` "hello" é 1 pwos`
	diff := cmp.Diff(&fetch.Response{
		Status: http.StatusTeapot,
		Headers: map[string]string{
			"x-two": "1, 2", "set-cookie": "a=1, b\nc=2", "date": "now", "content-type": "text/plain",
			"content-length": fmt.Sprint(len(text)),
		},
		Body: []byte(text), Size: int64(len(text)), URL: s.at("/p%2Fq/../%C3%A9?a=b%20c"),
	}, resp)
	if diff != "" {
		t.Error(diff)
	}
}

// TestMethods checks the methods, which of them have a body, and that GET has none (MESSAGE appendix D).
func TestMethods(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %s", r.Method, r.ContentLength, body)
	})
	for _, tc := range []struct {
		method string
		body   *fetch.Body
		want   string
	}{
		{"", nil, "GET 0 "},
		{"GET", fetch.Bytes([]byte("x")), "GET 0 "},
		{"POST", fetch.Bytes(nil), "POST 0 "},
		{"PUT", fetch.Bytes([]byte("xy")), "PUT 2 xy"},
		{"PATCH", nil, "PATCH 0 "},
		{"DELETE", nil, "DELETE 0 "},
		{"DELETE", fetch.Bytes([]byte("x")), "DELETE 1 x"},
	} {
		req := get(t, s.at("/"))
		req.Method, req.Body = tc.method, tc.body
		resp, err := do(t, s.options(t), req)
		testkit.Must(t, err)
		if string(resp.Body) != tc.want {
			t.Errorf("%s: %q, want %q", tc.method, resp.Body, tc.want)
		}
	}
}

// TestVerifies checks that a server without a valid certificate for its name gets no request.
func TestVerifies(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") })
	untrusting := s.options(t)
	untrusting.RootCAs = servePlain(t, nil).options(t).RootCAs
	_, err := do(t, untrusting, get(t, s.at("/")))
	want(t, err, fault.Upstream, "no valid certificate")

	o := s.options(t)
	o.AllowHosts = hosts(t, "other.test:*")
	o.Resolver = names{"other.test": {"127.0.0.1"}}
	_, err = do(t, o, get(t, "https://other.test:"+s.port))
	want(t, err, fault.Upstream, "no valid certificate")
}

// TestFailures checks that errors have a fix, and no text of the server.
func TestFailures(t *testing.T) {
	t.Parallel()
	plain := servePlain(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		testkit.Must(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, map[string]string{
			"/nothing":  "",
			"/garbage":  "hush hush\r\n\r\n",
			"/short":    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhush",
			"/switch":   "HTTP/1.1 101 Switching Protocols\r\n\r\nhush",
			"/status":   "HTTP/1.1 999 hush\r\nContent-Length: 0\r\n\r\n",
			"/nogzip":   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 14\r\n\r\nhush hush hush",
			"/brotli":   "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nhush",
			"/twice":    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 4\r\n\r\nhush",
			"/header":   "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("hush", 20_000) + "\r\n\r\n",
			"/location": "HTTP/1.1 302 Found\r\nLocation: https://u:hush@example.com/\r\n\r\n",
		}[r.URL.Path])
	})
	for path, says := range map[string]string{
		"/nothing":  "hung up",
		"/garbage":  "does not use HTTP",
		"/short":    "hung up before its answer was complete",
		"/switch":   "status 101",
		"/status":   "status 999",
		"/nogzip":   "does not unpack",
		"/brotli":   "was not requested",
		"/twice":    "was not requested",
		"/header":   "a header that is too long",
		"/location": "redirected to a URL that must not hold a user",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			req := get(t, "http://example.com:"+plain.port+path+"?q=hush")
			req.Policy.PlainHTTP = true
			_, err := do(t, plain.options(t), req)
			want(t, err, fault.Upstream, "example.com:"+plain.port, says)
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats the text of the server: %v", err)
			}
		})
	}
	_, err := do(t, plain.options(t), get(t, plain.at("/")))
	want(t, err, fault.Upstream, "does not use TLS")
	_, err = do(t, plain.options(t), get(t, "https://none.test/"))
	want(t, err, fault.Upstream, "none.test is not the name of any host")
}

// TestCancel checks that a call ends when its context is canceled, with the cause of the context.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the caller has left")
	ended := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 100))
		_ = http.NewResponseController(w).Flush()
		cancel(left)
		<-r.Context().Done()
		close(ended)
	})
	_, err := fetch.New(s.options(t)).Do(ctx, get(t, s.at("/")))
	if !errors.Is(err, left) {
		t.Errorf("%v, want %v", err, left)
	}
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Error("the request at the server was not canceled")
	}
}

// TestConcurrent checks that at most the configured number of calls is in flight.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	leave := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	o := s.options(t)
	o.Limits.Concurrent = 1
	f := fetch.New(o)
	first := make(chan error, 1)
	go func() {
		_, err := f.Do(context.Background(), get(t, s.at("/")))
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Do(ctx, get(t, s.at("/"))); !errors.Is(err, context.Canceled) {
		t.Errorf("the second call: %v", err)
	}
	close(leave)
	testkit.Must(t, <-first)
	go func() { <-entered }()
	_, err := f.Do(t.Context(), get(t, s.at("/")))
	testkit.Must(t, err)
}

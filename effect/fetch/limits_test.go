package fetch_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// counter is a writer that counts and discards its data.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// spill returns a request with a Spill that discards the body, and its counter.
func spill(req fetch.Request) (fetch.Request, *counter) {
	c := &counter{}
	req.Spill = func() (io.Writer, error) { return c, nil }
	return req, c
}

// flood writes zeros until the client disconnects, or n bytes if n is not 0. It returns the number of bytes written.
func flood(w io.Writer, n int64) (sent int64) {
	block := make([]byte, 32<<10)
	for n == 0 || sent < n {
		m, err := w.Write(block)
		if sent += int64(m); err != nil {
			break
		}
	}
	return sent
}

// TestTooLarge checks that a body that is too large fails at the limit, however it is sent, with little memory. It is not parallel
// because it measures memory.
func TestTooLarge(t *testing.T) {
	const limit = 40 << 20
	handlers := map[string]http.HandlerFunc{
		"100MiB": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(100<<20))
			flood(w, 100<<20)
		},
		"chunked 100MiB": func(w http.ResponseWriter, _ *http.Request) { flood(w, 100<<20) },
		"endless":        func(w http.ResponseWriter, _ *http.Request) { flood(w, 0) },
		"bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			flood(z, 0)
		},
		// Empty gzip members never decompress to a byte.
		"empty members": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			var member strings.Builder
			_ = gzip.NewWriter(&member).Close()
			for {
				if _, err := io.WriteString(w, strings.Repeat(member.String(), 1000)); err != nil {
					return
				}
			}
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			for _, s := range []*site{serve(t, handler), servePlain(t, handler)} {
				o := s.options(t)
				o.Limits.WireBytes, o.Limits.BodyBytes = limit, limit
				url := s.at("/")
				if s.TLS == nil {
					url = strings.Replace(url, "https", "http", 1)
				}
				req, kept := spill(get(t, url))
				req.Policy.PlainHTTP = true
				f := fetch.New(o)
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := f.Do(t.Context(), req)
				runtime.ReadMemStats(&after)
				want(t, err, fault.HTTPTooLarge, "a body of more than 41943040 bytes: ask for a part of it")
				if n := kept.n.Load(); n > limit {
					t.Errorf("%d bytes were kept", n)
				}
				// This includes the memory of the server. A body in memory on either side would exceed the limit.
				if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 24<<20 {
					t.Errorf("the heap grew by %d MiB", grown>>20)
				}
			}
		})
	}
}

// TestJustLargeEnough checks that a body of exactly the limit is accepted, compressed or not.
func TestJustLargeEnough(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		out := io.Writer(w)
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		flood(out, limit)
		if r.URL.RawQuery != "" {
			_, _ = out.Write([]byte{0})
		}
	})
	o := s.options(t)
	o.Limits.WireBytes, o.Limits.BodyBytes = limit, limit
	for _, path := range []string{"/", "/packed"} {
		req, kept := spill(get(t, s.at(path)))
		resp, err := do(t, o, req)
		testkit.Must(t, err)
		if resp.Size != limit || kept.n.Load() != limit {
			t.Errorf("%s: %d bytes, %d were kept", path, resp.Size, kept.n.Load())
		}
		req, _ = spill(get(t, s.at(path+"?more")))
		_, err = do(t, o, req)
		want(t, err, fault.HTTPTooLarge, "more than 1048576")
	}
}

// TestLongHeader checks that a header that is too long is refused over HTTP/2, and accepted with a higher limit.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1000))
		}
	})
	o := s.options(t)
	_, err := do(t, o, get(t, s.at("/")))
	want(t, err, fault.Upstream)
	o.Limits.HeaderBytes = 256 << 10
	_, err = do(t, o, get(t, s.at("/")))
	testkit.Must(t, err)
}

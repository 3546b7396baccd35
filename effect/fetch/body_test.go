package fetch_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestUnpacks checks that a gzip body is decompressed and its headers removed, and that a range request does not ask for gzip, because
// the range would apply to the compressed body.
func TestUnpacks(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			fmt.Fprintf(w, "plain %q", r.Header.Values("Accept-Encoding"))
			return
		}
		w.Header().Set("Content-Encoding", "GZIP")
		if r.URL.Path == "/empty" {
			return
		}
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "unpacked")
		_ = z.Close()
	})
	for _, tc := range []struct {
		path    string
		headers map[string]string
		want    string
	}{
		{"/", nil, "unpacked"},
		{"/empty", nil, ""},
		{"/", map[string]string{"range": "bytes=0-"}, "plain []"},
	} {
		req := get(t, s.at(tc.path))
		req.Headers = tc.headers
		resp, err := do(t, s.options(t), req)
		testkit.Must(t, err)
		if string(resp.Body) != tc.want || resp.Headers["content-encoding"] != "" || tc.headers == nil && resp.Headers["content-length"] != "" {
			t.Errorf("%q %v, want %q", resp.Body, resp.Headers, tc.want)
		}
	}
}

// TestSpill checks that a body that is long or not text is written to Spill, and is an error without Spill.
func TestSpill(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 1000)
	for name, tc := range map[string]struct {
		body    string
		spilled bool
	}{
		"text":     {strings.Repeat("x", 1000), false},
		"longer":   {strings.Repeat("x", 1001), true},
		"long":     {long, true},
		"binary":   {"\xff\x00", true},
		"escapes":  {strings.Repeat("\x01", 200), true},
		"empty":    {"", false},
		"unicode":  {strings.Repeat("é", 500), false},
		"unicode2": {strings.Repeat("é", 501), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) })
			o := s.options(t)
			o.Limits.InlineBytes = 1000
			var kept bytes.Buffer
			asked := 0
			req := get(t, s.at("/"))
			req.Spill = func() (io.Writer, error) { asked++; return &kept, nil }
			resp, err := do(t, o, req)
			testkit.Must(t, err)
			got := string(resp.Body)
			if tc.spilled {
				got = kept.String()
			}
			if resp.Spilled != tc.spilled || asked > 1 || got != tc.body || resp.Size != int64(len(tc.body)) {
				t.Errorf("spilled %t, Spill called %d times, %d of %d bytes, size %d", resp.Spilled, asked, len(got), len(tc.body), resp.Size)
			}
			if !tc.spilled {
				return
			}
			req.Spill = nil
			_, err = do(t, o, req)
			want(t, err, fault.HTTPTooLarge, "1000 bytes")

			full := errors.New("disk full")
			req.Spill = func() (io.Writer, error) { return nil, full }
			if _, err = do(t, o, req); !errors.Is(err, full) {
				t.Errorf("%v, want the writer's own error", err)
			}
			req.Spill = func() (io.Writer, error) { return failing{full}, nil }
			if _, err = do(t, o, req); !errors.Is(err, full) {
				t.Errorf("%v, want the writer's own error", err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Close() error              { return nil }

// TestBodyFails checks that Do returns the caller's error if the request body cannot be read.
func TestBodyFails(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	gone := errors.New("gone")
	for name, open := range map[string]func() (io.ReadCloser, error){
		"open": func() (io.ReadCloser, error) { return nil, gone },
		"read": func() (io.ReadCloser, error) { return failing{gone}, nil },
	} {
		req := get(t, s.at("/"))
		req.Method, req.Body = "POST", &fetch.Body{Size: 10, Open: open}
		if _, err := do(t, s.options(t), req); !errors.Is(err, gone) {
			t.Errorf("%s: %v, want %v", name, err, gone)
		}
	}
}

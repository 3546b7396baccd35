package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// redirecting returns a handler that redirects to /N-1 from the path /N, and from /0 to the URL in to.
func redirecting(to *atomic.Pointer[string]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); n > 0 {
			w.Header().Set("Location", "/"+strconv.Itoa(n-1))
		} else {
			w.Header().Set("Location", *to.Load())
		}
		w.WriteHeader(http.StatusFound)
	}
}

// TestRedirectLimit checks that redirects are followed up to the limit.
func TestRedirectLimit(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		n, _ := strconv.Atoi(r.URL.Path[1:])
		if n > 0 {
			http.Redirect(w, r, strconv.Itoa(n-1), http.StatusFound)
		}
	})
	resp, err := do(t, s.options(t), get(t, s.at("/5")))
	testkit.Must(t, err)
	if resp.Status != 200 || resp.URL != s.at("/0") || asked.Load() != 6 {
		t.Errorf("%+v after %d requests", resp, asked.Load())
	}
	asked.Store(0)
	_, err = do(t, s.options(t), get(t, s.at("/6")))
	want(t, err, fault.Upstream, "after 5 redirects")
	if asked.Load() != 6 {
		t.Errorf("%d requests, want 6", asked.Load())
	}
}

// TestRedirectMethods checks which redirects keep the method and the body, and which change the method to GET.
func TestRedirectMethods(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if status, _ := strconv.Atoi(r.URL.Path[1:]); status > 0 {
			w.Header().Set("Location", "/")
			w.WriteHeader(status)
			return
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, body, r.Header.Get("Content-Type"))
	})
	for _, tc := range []struct {
		status       int
		method, want string
	}{
		{301, "POST", "GET  "},
		{302, "POST", "GET  "},
		{303, "POST", "GET  "},
		{303, "PUT", "GET  "},
		{301, "PUT", "PUT body x/y"},
		{302, "DELETE", "DELETE body x/y"},
		{307, "POST", "POST body x/y"},
		{308, "PATCH", "PATCH body x/y"},
	} {
		req := get(t, s.at("/"+strconv.Itoa(tc.status)))
		req.Method, req.Body, req.Headers = tc.method, fetch.Bytes([]byte("body")), map[string]string{"content-type": "x/y"}
		resp, err := do(t, s.options(t), req)
		testkit.Must(t, err)
		if string(resp.Body) != tc.want {
			t.Errorf("%d %s: %q, want %q", tc.status, tc.method, resp.Body, tc.want)
		}
	}
	for _, status := range []int{300, 304, 305, 306} {
		resp, err := do(t, s.options(t), get(t, s.at("/"+strconv.Itoa(status))))
		testkit.Must(t, err)
		if resp.Status != status {
			t.Errorf("the answer %d was returned as %d", status, resp.Status)
		}
	}
}

// TestRedirectNowhere checks that a redirect without a Location is returned as the answer.
func TestRedirectNowhere(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) })
	resp, err := do(t, s.options(t), get(t, s.at("/")))
	testkit.Must(t, err)
	if resp.Status != 302 {
		t.Errorf("status %d", resp.Status)
	}
}

// TestRedirectPolicy checks that the policy applies to each redirect: to other hosts, other ports, and plain http.
func TestRedirectPolicy(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	for _, location := range []string{
		"https://a.example.com:%s/", "https://example.com:1/", "http://example.com:%s/", "//a.example.com:%s/", "HTTP://example.com:%s",
		"file:///etc/passwd", "javascript:alert(1)", "https://",
	} {
		if strings.Contains(location, "%s") {
			location = fmt.Sprintf(location, tr.port)
		}
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(307)
		})
		req := get(t, s.at("/"))
		req.Policy.Hosts = hosts(t, "example.com:"+s.port)
		_, err := do(t, s.options(t), req)
		if shown, ok := errors.AsType[*fault.Fault](err); !ok || shown.Kind != fault.Forbidden && shown.Kind != fault.Upstream || !strings.Contains(err.Error(), "redirected") {
			t.Errorf("%s: %v", location, err)
		}
	}
	if tr.touched.Load() != 0 {
		t.Error("the trap got a connection")
	}
}

// TestRedirectDropsCredentials checks that headers that could be credentials are removed when a redirect leaves the origin of the
// request, and stay removed if a later redirect leads back.
func TestRedirectDropsCredentials(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string][]string{}
	note := func(at string, r *http.Request) {
		var sent []string
		for name, values := range r.Header {
			sent = append(sent, name+"="+strings.Join(values, ","))
		}
		slices.Sort(sent)
		mu.Lock()
		got[at] = sent
		mu.Unlock()
	}
	var first, second *site
	second = serve(t, func(w http.ResponseWriter, r *http.Request) {
		note("port "+r.URL.Path, r)
		w.Header().Set("Location", first.at("/back"))
		w.WriteHeader(308)
	})
	first = serve(t, func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		note(host+" "+r.URL.Path, r)
		switch r.URL.Path {
		case "/":
			w.Header().Set("Location", "/same")
		case "/same":
			w.Header().Set("Location", strings.Replace(first.at("/host"), "example.com", "a.example.com", 1))
		case "/host":
			w.Header().Set("Location", second.at("/other"))
		default:
			return
		}
		w.WriteHeader(308)
	})
	req := get(t, first.at("/"))
	req.Headers = map[string]string{
		"Authorization": "Bearer open", "Cookie": "a=b", "X-Api-Key": "pwenc:v1:key", "X-Token": "t", "Accept": "a/b", "User-Agent": "me",
	}
	opened := 0
	req.Policy.Open = func(_ context.Context, sealed string) (string, error) { opened++; return "opened " + sealed[9:], nil }
	_, err := do(t, first.options(t), req)
	testkit.Must(t, err)
	all := []string{
		"Accept-Encoding=gzip", "Accept=a/b", "Authorization=Bearer open", "Cookie=a=b", "User-Agent=me", "X-Api-Key=opened key", "X-Token=t",
	}
	few := []string{"Accept-Encoding=gzip", "Accept=a/b", "User-Agent=me"}
	diff := cmp.Diff(map[string][]string{
		"example.com /": all, "example.com /same": all, "a.example.com /host": few, "port /other": few, "example.com /back": few,
	}, got)
	if diff != "" || opened != 2 {
		t.Errorf("opened %d times; %s", opened, diff)
	}
}

// TestSealed checks that sealed values are opened only for callers that may use them, sent only over TLS, and in no error.
func TestSealed(t *testing.T) {
	t.Parallel()
	const secret = "hush"
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strconv.Itoa(len(r.Header.Get("Authorization"))))
	})
	broken := errors.New("no key")
	for name, tc := range map[string]struct {
		open func(context.Context, string) (string, error)
		url  string
		says string
		is   error
	}{
		"opened":  {open: func(context.Context, string) (string, error) { return secret, nil }},
		"nobody":  {says: "may not send a sealed value in Authorization"},
		"broken":  {open: func(context.Context, string) (string, error) { return "", broken }, says: "open the sealed value in Authorization", is: broken},
		"newline": {open: func(context.Context, string) (string, error) { return secret + "\r\nX: y", nil }, says: "that is not valid"},
		"long":    {open: func(context.Context, string) (string, error) { return strings.Repeat(secret, 20_000), nil }, says: "that is not valid"},
		"plain":   {open: func(context.Context, string) (string, error) { return secret, nil }, url: "http://example.com/", says: "https only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := get(t, s.at("/"))
			if tc.url != "" {
				req.URL, req.Policy.PlainHTTP = tc.url, true
			}
			req.Headers, req.Policy.Open = map[string]string{"authorization": "pwenc:v1:sealed"}, tc.open
			resp, err := do(t, s.options(t), req)
			switch {
			case tc.says == "":
				testkit.Must(t, err)
				if string(resp.Body) != "4" {
					t.Errorf("sent %s bytes", resp.Body)
				}
			case err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "sealed\""):
				t.Errorf("%v, want %q", err, tc.says)
			case tc.is != nil && !errors.Is(err, tc.is):
				t.Errorf("%v does not wrap %v", err, tc.is)
			}
		})
	}
}

package console

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// headers are set on every answer, in addition to the policy of the page.
var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// guard refuses requests for other hosts, and those of pages of other origins.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Security-Policy", s.page.policy)
		switch {
		case !slices.Contains(s.hosts, r.Host):
			refuse(w, http.StatusForbidden, "console.host", fmt.Sprintf("this server is not %.100q", r.Host))
		case !ownOrigin(r):
			refuse(w, http.StatusForbidden, "console.origin", "pages of other origins may not ask")
		case !ownFetch(r):
			refuse(w, http.StatusForbidden, "console.origin", "pages of other sites may not ask, nor show this one in theirs")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, bodyBytes)
			next.ServeHTTP(w, r)
		}
	})
}

// ownOrigin reports whether a request names no origin, or ours. GETs are no exception: one of them opens a stream.
func ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 0 || len(origins) == 1 && origins[0] == "http://"+r.Host
}

// ownFetch reports whether a browser says that its user, or a page of ours, has made the request. The page itself may be
// opened from anywhere, such as from the file with the link, but not inside another page.
func ownFetch(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // programs that are no browser send none
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// bounded is a listener that limits the number of open connections, and closes further ones: a page needs few.
type bounded struct {
	net.Listener
	places chan struct{}
}

func newBounded(l net.Listener, most int) *bounded { return &bounded{l, make(chan struct{}, most)} }

// Accept returns the next connection within the limit.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.places <- struct{}{}:
			return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-b.places })}, nil
		default:
			_ = conn.Close() // its peer sees that it is over
		}
	}
}

// placed is a connection that releases its place when it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

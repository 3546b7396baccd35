package console

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// headers has the headers of every answer, except the Content-Security-Policy of the page.
var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// guard sets the headers of every answer, and refuses requests for other hosts or from pages of other origins.
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

// ownOrigin reports whether a request has no Origin header, or the origin of this server. It checks GETs too: one of them opens a stream.
func ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 0 || len(origins) == 1 && origins[0] == "http://"+r.Host
}

// ownFetch reports whether the Sec-Fetch headers say that the user, or a page of this server, made the request. The page itself may
// be opened from anywhere, such as from the file with the link, but not in a frame of another page.
func ownFetch(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // programs other than browsers send no such header
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// bounded is a listener that limits the number of open connections, and closes further ones.
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
			_ = conn.Close() // the peer sees a closed connection
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

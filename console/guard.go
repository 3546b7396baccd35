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

// bounded is a listener that limits the number of open connections. Any local user can connect, so those that have shown a session do
// not compete with the others: of the others the newest stay, since a page shows its session with its first request.
type bounded struct {
	net.Listener
	most int // of either kind

	mu        sync.Mutex
	strangers []*placed // oldest first
	known     int
}

func newBounded(l net.Listener, most int) *bounded { return &bounded{Listener: l, most: most} }

// Accept returns the next connection. Above the limit it closes the oldest stranger.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &placed{Conn: conn, of: b}
	b.mu.Lock()
	b.strangers = append(b.strangers, p)
	var over *placed
	if len(b.strangers) > b.most {
		over = b.strangers[0]
		b.strangers = slices.Delete(b.strangers, 0, 1)
	}
	b.mu.Unlock()
	if over != nil {
		_ = over.Conn.Close() // its handler, if it has one, ends with the error
	}
	return p, nil
}

// placed is a connection of a bounded listener.
type placed struct {
	net.Conn
	of    *bounded
	known bool // guarded by of.mu
}

// admit tells that the connection has shown a session. It reports false if as many others have.
func (p *placed) admit() bool {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.known {
		return true
	}
	i := slices.Index(b.strangers, p)
	if i < 0 || b.known >= b.most { // it was closed meanwhile, or there is no room
		return false
	}
	b.strangers = slices.Delete(b.strangers, i, i+1)
	b.known++
	p.known = true
	return true
}

// Close closes the connection.
func (p *placed) Close() error {
	b := p.of
	b.mu.Lock()
	if p.known {
		p.known = false
		b.known--
	} else if i := slices.Index(b.strangers, p); i >= 0 {
		b.strangers = slices.Delete(b.strangers, i, i+1)
	}
	b.mu.Unlock()
	return p.Conn.Close()
}

// connection is the key of a request's connection in its context.
type connection struct{}

// placedOf returns the connection of a request.
func placedOf(r *http.Request) *placed { return r.Context().Value(connection{}).(*placed) }

package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// Bounds of sessions.
const (
	linkTime    = 5 * time.Minute  // a link expires after this long
	idleSession = 30 * time.Minute // a session ends after this long without a request or a stream
	longSession = 12 * time.Hour   // a session ends after this long in any case
	mostSession = 8
	mostStreams = 4  // of a session
	mostCalls   = 16 // of a session, in flight
)

// digest is the SHA-256 of a secret or token. The server stores and compares only digests.
type digest [sha256.Size]byte

// sessions holds the sessions of the pages that have logged in, and the current link.
type sessions struct {
	now func() time.Time

	mu     sync.Mutex
	secret digest // of the link
	until  time.Time
	state  linkState
	open   map[digest]*session
}

// linkState is the state of the link.
type linkState uint8

const (
	noLink linkState = iota
	linkOpen
	linkUsed
)

// session is the session of a page that has logged in.
type session struct {
	since  time.Time
	seen   time.Time // its last request, or the end of its last stream
	calls  int
	stream int
	end    context.CancelFunc // cancels its calls in flight
	over   context.Context    // done when the session has ended
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: make(map[digest]*session)}
}

// newSecret returns the secret of a new link, which replaces the previous link.
func (s *sessions) newSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := rand.Text()
	s.secret, s.until, s.state = sha256.Sum256([]byte(secret)), s.now().Add(linkTime), linkOpen
	return secret
}

// loginRefusal is the reason why a secret is refused; "" if it is accepted.
type loginRefusal string

const (
	wrongSecret   loginRefusal = "this link is not the newest: open the one that pwos console names"
	usedSecret    loginRefusal = "this link was used already: if that was not you, end pwos console; else ask it for another link"
	expiredSecret loginRefusal = "this link has expired: ask pwos console for another one"
)

// login exchanges the secret of the link for the token of a new session. With mostSession open sessions, it ends the oldest.
func (s *sessions) login(secret string) (token string, refusal loginRefusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := digest(sha256.Sum256([]byte(secret)))
	switch right := subtle.ConstantTimeCompare(got[:], s.secret[:]) == 1; {
	case s.state == noLink || !right:
		return "", wrongSecret
	case s.state == linkUsed:
		return "", usedSecret
	case s.now().After(s.until):
		return "", expiredSecret
	}
	s.state = linkUsed
	s.expire()
	for len(s.open) >= mostSession {
		s.drop(s.oldest())
	}
	token = rand.Text() + rand.Text()
	over, end := context.WithTimeout(context.Background(), longSession)
	s.open[sha256.Sum256([]byte(token))] = &session{since: s.now(), seen: s.now(), over: over, end: end}
	return token, ""
}

// oldest returns the session whose last activity is the earliest. The caller holds mu.
func (s *sessions) oldest() (found digest) {
	var at time.Time
	for d, open := range s.open {
		if at.IsZero() || open.seen.Before(at) {
			found, at = d, open.seen
		}
	}
	return found
}

// expire ends the sessions that have expired. The caller holds mu.
func (s *sessions) expire() {
	now := s.now()
	for d, open := range s.open {
		idle := open.stream == 0 && open.calls == 0 && now.Sub(open.seen) > idleSession
		if idle || now.Sub(open.since) > longSession {
			s.drop(d)
		}
	}
}

// drop ends a session. The caller holds mu.
func (s *sessions) drop(d digest) {
	if open := s.open[d]; open != nil {
		open.end()
		delete(s.open, d)
	}
}

// close ends all sessions.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.open {
		s.drop(d)
	}
}

// tokenOf returns the token of a request; "" if it has none.
func tokenOf(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// only wraps a handler that needs a session. The context of the request is canceled when the session ends.
func (s *sessions) only(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams := r.URL.Path == "/api/events"
		open, ok := s.enter(tokenOf(r), streams)
		switch {
		case open == nil:
			refuse(w, http.StatusUnauthorized, "console.login", "this page has no session, or it has ended: open a new link of pwos console")
			return
		case !ok:
			refuse(w, http.StatusTooManyRequests, "console.busy", "this page has too many calls in flight: wait for their answers")
			return
		}
		defer s.leave(open, streams)
		if !placedOf(r).admit() {
			refuse(w, http.StatusTooManyRequests, "console.busy", "this server has too many connections: close some")
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(open.over, cancel)()
		next(w, r.WithContext(ctx))
	})
}

// enter returns the session of a token, nil if there is none, and counts one request or stream of the session. ok is false if the
// session already has the most that it may have.
func (s *sessions) enter(token string, streams bool) (open *session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if open = s.open[sha256.Sum256([]byte(token))]; open == nil {
		return nil, false
	}
	count, most := &open.calls, mostCalls
	if streams {
		count, most = &open.stream, mostStreams
	}
	if *count >= most {
		return open, false
	}
	*count++
	open.seen = s.now()
	return open, true
}

// leave ends a request or stream that enter has counted.
func (s *sessions) leave(open *session, streams bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if streams {
		open.stream--
	} else {
		open.calls--
	}
	open.seen = s.now()
}

// loginInput is the body of a login.
type loginInput struct {
	Secret string `json:"secret" keep:"never" minlen:"1" maxlen:"100" doc:"The secret of the link."`
}

// login handles POST /api/login.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	body, ok := bodyOf(w, r)
	if !ok {
		return
	}
	in, err := schema.TypeOf[loginInput]().Decode(body)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "console.input", err.Error())
		return
	}
	token, refusal := s.sessions.login(in.(*loginInput).Secret)
	if refusal != "" {
		refuse(w, http.StatusUnauthorized, "console.link", string(refusal))
		return
	}
	if s.loggedIn != nil {
		s.loggedIn()
	}
	answer(w, view.Object(nil).Text("token", token).Close())
}

// logout handles POST /api/logout.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	s.sessions.drop(sha256.Sum256([]byte(tokenOf(r))))
	answer(w, []byte("{}"))
}

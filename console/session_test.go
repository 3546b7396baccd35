package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLink checks that a link works for one login, for five minutes, and only until there is a newer link.
func TestLink(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	login := func(secret string) *answer { return s.ask(t, `POST /api/login {"secret":"`+secret+`"}`, "") }
	refused := func(what, says string, a *answer) {
		t.Helper()
		if a.status != http.StatusUnauthorized || a.errorID() != "console.link" || !strings.Contains(a.body, says) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	refused("before any link", "not the newest", login("ABCDEFGH"))
	first := s.secret()
	second := s.secret()
	refused("an older link", "not the newest", login(first))
	refused("a wrong secret", "not the newest", login("A"+second[1:]+"B"))
	if a := login(second); a.status != http.StatusOK {
		t.Errorf("the newest link: %d %s", a.status, a.body)
	}
	testkit.Receive(t, s.logins, "word of the login")
	refused("a second use", "used already", login(second))
	late := s.secret()
	s.clock.advance(6 * time.Minute)
	refused("after its time", "expired", login(late))
	select {
	case <-s.logins:
		t.Error("a refused login is announced as a login")
	default:
	}
}

// TestLoginBodies checks that a login with an invalid body is refused, and does not use the link.
func TestLoginBodies(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	secret := s.secret()
	for body, want := range map[string]int{
		"":                     http.StatusBadRequest,
		"{}":                   http.StatusUnprocessableEntity,
		"null":                 http.StatusUnprocessableEntity,
		`{"secret":1}`:         http.StatusUnprocessableEntity,
		`{"secret":"` + secret: http.StatusBadRequest,
		`{"secret":"` + secret + `","secret":"x"}`:         http.StatusBadRequest,
		`{"secret":"` + secret + `","more":1}`:             http.StatusUnprocessableEntity,
		`{"secret":"` + secret + `"} {}`:                   http.StatusBadRequest,
		`{"secret":"` + strings.Repeat("A", 70<<10) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		if a := s.ask(t, "POST /api/login "+body, ""); a.status != want {
			t.Errorf("%.60s: %d %.200s, want %d", body, a.status, a.body, want)
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if a := s.ask(t, `POST /api/login {"secret":"`+secret+`"}`, "", form); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("what a form of a foreign page could send: %d %s", a.status, a.body)
	}
	if a := s.ask(t, `POST /api/login {"secret":"`+secret+`"}`, ""); a.status != http.StatusOK {
		t.Errorf("the link after that: %d %s", a.status, a.body)
	}
}

// TestSessionsEnd checks that a session ends by a logout, after 30 minutes without a request, after 12 hours in any case, and, as the
// longest idle one, when a login exceeds the limit.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	inside := func(token string) bool { return s.ask(t, "GET /api/processes", token).status == http.StatusOK }
	left := s.login(t)
	if !inside(left) || s.ask(t, "POST /api/logout {}", left).status != http.StatusOK || inside(left) {
		t.Error("a session is still valid after its logout")
	}
	idle := s.login(t)
	s.clock.advance(29 * time.Minute)
	if !inside(idle) {
		t.Error("a session ends before its timeout")
	}
	s.clock.advance(31 * time.Minute)
	if inside(idle) {
		t.Error("a session that was idle too long is still valid")
	}
	long := s.login(t)
	for range 25 {
		s.clock.advance(29 * time.Minute)
		inside(long)
	}
	if inside(long) {
		t.Error("a session lasts longer than twelve hours")
	}
	var tokens []string
	for range 9 {
		tokens = append(tokens, s.login(t))
		s.clock.advance(time.Second)
	}
	if inside(tokens[0]) || !inside(tokens[1]) || !inside(tokens[8]) {
		t.Error("with nine sessions, the longest idle one has not ended")
	}
}

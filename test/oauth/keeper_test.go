package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// kept is a keeper of the tokens of a world, with a separate store.
type kept struct {
	*oauth.Keeper
	w *world

	mu     sync.Mutex
	stored string
	now    time.Time
	full   error // the error of storing; nil: none
	notes  []string
}

func (w *world) keep(l *oauth.Login) *kept {
	w.t.Helper()
	k := &kept{w: w, now: time.Now()}
	if l != nil {
		k.store(l)
	}
	k.Keeper = &oauth.Keeper{
		Source: w.client(), Name: "mcp.docs", LogIn: strings.Fields("pwos mcp login docs"), Secure: true,
		Load: func(context.Context) (string, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.stored, nil
		},
		Store: func(_ context.Context, loaded, next string) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.full != nil || loaded != k.stored {
				return errors.Join(errors.New("not stored"), k.full)
			}
			k.stored = next
			return nil
		},
		Now: func() time.Time {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.now
		},
		Turn: make(chan struct{}, 1), Note: func(text string, err error) { k.notes = append(k.notes, text+": "+err.Error()) },
	}
	return k
}

func (k *kept) store(l *oauth.Login) {
	text, err := l.String()
	testkit.Must(k.w.t, err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stored = text
}

// pass advances the clock.
func (k *kept) pass(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.Add(d)
}

// request makes a request to the MCP server, and returns its credential, and the error for the agent.
func (k *kept) request() (string, error) {
	k.w.t.Helper()
	secret, err := k.Secret(testkit.Context(k.w.t))
	if err != nil {
		return "", err
	}
	k.w.mu.Lock()
	_, known := k.w.access[secret]
	k.w.mu.Unlock()
	if !known {
		return secret, k.Answered(secret, http.StatusUnauthorized, http.Header{})
	}
	return secret, k.Answered(secret, http.StatusOK, http.Header{})
}

// good makes a request that must succeed.
func (k *kept) good() string {
	k.w.t.Helper()
	secret, err := k.request()
	testkit.Must(k.w.t, err)
	return secret
}

// bad makes a request that must fail with an error that contains all parts.
func (k *kept) bad(id fault.ID, parts ...string) {
	k.w.t.Helper()
	_, err := k.request()
	for _, part := range parts {
		if !errors.Is(err, id) || !strings.Contains(err.Error(), part) {
			k.w.t.Errorf("%v, want %s with %q", err, id, part)
		}
	}
}

const again = `log in with "pwos mcp login docs"`

// TestRenew: an expired login is renewed, once for all waiting requests; so is one that the server refuses earlier.
func TestRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	w.set(func() { w.expires = 24 * 3600 })
	first := k.good()
	if k.good() != first || w.renewals != 0 {
		t.Error("the login was renewed too early")
	}
	k.pass(time.Hour - 20*time.Second)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if secret, err := k.request(); err != nil || secret == first {
				t.Errorf("%s, %v", secret, err)
			}
		})
	}
	all.Wait()
	second := k.good()
	w.revoke()
	if secret, err := k.request(); !errors.Is(err, fault.UpstreamToken) || secret != second {
		t.Errorf("revoked: %s, %v", secret, err)
	}
	if k.good() == second || w.renewals != 2 {
		t.Errorf("the login was renewed %d times", w.renewals)
	}
}

// TestTwoKeepersRenewOnce: programs that use one login, such as a restarted one and the rest of the previous one, renew it
// once: a second renewal would use a used token, which servers treat as theft.
func TestTwoKeepersRenewOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	other := &oauth.Keeper{
		Source: w.client(), Name: "mcp.other", Secure: true, Load: k.Load, Store: k.Store, Now: k.Now, Note: k.Note, Turn: k.Turn,
	}
	k.pass(2 * time.Hour)
	k.w.set(func() { w.expires = 24 * 3600 })
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			one := k.Keeper
			if i%2 == 0 {
				one = other
			}
			if _, err := one.Secret(testkit.Context(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if w.renewals != 1 {
		t.Errorf("the login was renewed %d times", w.renewals)
	}
}

// TestRenewed: a refresh token stays if the answer has no new one, and renewed tokens are stored although the caller has
// disconnected.
func TestRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.logIn()
	k := w.keep(first)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	w.set(func() { w.token, w.during, w.expires = map[string]any{"refresh_token": nil}, cancel, 24*3600 })
	k.pass(2 * time.Hour)
	secret, err := k.Secret(ctx)
	testkit.Must(t, err)
	login, ok := oauth.Parse(k.stored)
	if !ok || login.Access != secret || secret == first.Access || login.Refresh != first.Refresh {
		t.Errorf("stored: %+v", login)
	}
}

// TestOver: the error of a login that cannot be renewed has its fix, and the server gets no further requests; a new login
// helps.
func TestOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	k.good()
	w.set(func() { clear(w.refresh) })
	k.pass(2 * time.Hour)
	for range 3 {
		k.bad(fault.UpstreamLogin, "mcp.docs: its login has ended", again)
	}
	if w.renewals != 1 {
		t.Errorf("the renewal was tried %d times", w.renewals)
	}
	w.set(func() { w.expires = 0 })
	k.store(w.logIn())
	k.good()

	login := w.logIn()
	login.Refresh = ""
	k.store(login)
	k.good()
	w.revoke()
	k.bad(fault.UpstreamToken, "")
	k.bad(fault.UpstreamLogin, again)
}

// TestRefusedAnew: a server that refuses a token that was just renewed does not get further ones.
func TestRefusedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	w.revoke()
	k.bad(fault.UpstreamToken, "send the request again")
	secret, err := k.Secret(testkit.Context(t))
	testkit.Must(t, err)
	w.revoke()
	if err := k.Answered(secret, http.StatusUnauthorized, http.Header{}); !errors.Is(err, fault.UpstreamLogin) {
		t.Errorf("%v", err)
	}
	for range 3 {
		k.bad(fault.UpstreamLogin, again)
	}
	if w.renewals != 1 {
		t.Errorf("the login was renewed %d times", w.renewals)
	}
}

// TestAuthorizationServerDown: the next request asks it again.
func TestAuthorizationServerDown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusFound, http.StatusOK} {
		w := newWorld(t)
		k := w.keep(w.logIn())
		k.pass(2 * time.Hour)
		w.set(func() { w.broken = status })
		k.bad(fault.UpstreamFailed, "did not renew the login: try again later")
		if len(k.notes) != 1 || strings.Contains(k.notes[0], "CANARY") {
			t.Errorf("%d: notes %q", status, k.notes)
		}
		w.set(func() { w.broken = 0 })
		k.good()
	}
}

// TestRenewalFailsForAll: requests that wait for a renewal share its failure, instead of trying one after the other.
func TestRenewalFailsForAll(t *testing.T) {
	t.Parallel()
	const waiters = 20
	w := newWorld(t)
	k := w.keep(w.logIn())
	k.pass(2 * time.Hour)
	loaded, all := make(chan struct{}, 3*waiters), sync.WaitGroup{}
	load := k.Load
	k.Load = func(ctx context.Context) (string, error) {
		loaded <- struct{}{}
		return load(ctx)
	}
	w.set(func() {
		w.token = map[string]any{"refresh_token": "r", "access_token": nil}
		w.during = func() {
			w.during = nil
			for range waiters + 1 { // each has loaded the login, and one of them again to renew it
				<-loaded
			}
		}
	})
	for range waiters {
		all.Go(func() {
			if _, err := k.Secret(testkit.Context(t)); !errors.Is(err, fault.UpstreamFailed) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if w.renewals > waiters/2 { // one, except for requests that had not started to wait
		t.Errorf("the renewal was tried %d times", w.renewals)
	}
	w.set(func() { w.token = nil })
	k.good()
}

// TestNotStored: renewed tokens that cannot be stored, or were replaced meanwhile, are not used.
func TestNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	k.pass(2 * time.Hour)
	k.full = errors.New("full")
	k.bad(fault.UpstreamFailed, "was not stored")
	k.full = nil
	k.store(w.logIn()) // with the real time
	k.now = time.Now()
	k.good()
}

// TestOtherCredentials: no credential is sent if there is none, over a connection that others can read, or to another
// server.
func TestOtherCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(nil)
	k.bad(fault.UpstreamLogin, "mcp.docs: it asks for a login", again)
	login := w.logIn()
	login.Server = "https://evil.test/mcp"
	k.store(login)
	k.bad(fault.UpstreamLogin, "another address", again)
	k.stored = "token"
	k.bad(fault.UpstreamLogin, "refuses the credential")
	w.set(func() { w.access["token"] = "" })
	if k.good() != "token" {
		t.Error("a bearer token is not sent as it is")
	}
	k.Secure = false
	k.bad(fault.UpstreamNoCredential, "not sent over http")
}

// TestScopes: the error for a server that needs more scopes has the command for it, quoted for a shell.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keep(w.logIn())
	k.good()
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "a%d ", i)
	}
	for challenge, want := range map[string]string{
		`Bearer error="insufficient_scope", scope="write:x $(y) ;z write:x"`: `log in with "pwos mcp login docs --scope read --scope write:x"`,
		`Bearer error="insufficient_scope"`:                                  `log in with "pwos mcp login docs --scope read"`,
		`Bearer error="insufficient_scope", scope="` + many.String() + `"`:   "--scope a0 --scope a1 ",
		`Basic error="insufficient_scope"`:                                   "",
		`Bearer error="other"`:                                               "",
		`"`:                                                                  "",
		``:                                                                   "",
	} {
		err := k.Answered("token", http.StatusForbidden, http.Header{"Www-Authenticate": {challenge}})
		if want == "" && err != nil || want != "" && (!errors.Is(err, fault.UpstreamLogin) || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000) {
			t.Errorf("%.100s: %v", challenge, err)
		}
	}
}

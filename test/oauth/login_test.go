package oauth_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/internal/testkit"
)

// fetcher returns a fetcher that may dial loopback, with the rules of Http.Fetch.
func (w *world) fetcher() *fetch.Fetcher {
	return fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: w.roots})
}

// client returns a client for the world's MCP server.
func (w *world) client() *oauth.Client {
	w.t.Helper()
	at, err := url.Parse(w.address())
	testkit.Must(w.t, err)
	c := oauth.NewClient(at, w.fetcher())
	w.t.Cleanup(c.Close)
	return c
}

// follow acts as the person who logs in.
func (w *world) follow(address string) error {
	back, err := w.browser(address)
	if err == nil {
		_, err = visit(back)
	}
	return err
}

// logIn logs in.
func (w *world) logIn() *oauth.Login {
	w.t.Helper()
	login, err := w.client().LogIn(testkit.Context(w.t), &oauth.Options{Show: w.follow})
	testkit.Must(w.t, err)
	return login
}

// TestLogIn: a login has the tokens that the server accepts, and those that renew them.
func TestLogIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	login := w.logIn()
	if w.access[login.Access] != "read" || login.Server != w.address() || login.Resource != w.address() || login.ClientID != "registered" ||
		login.TokenURL != w.as.URL+"/token" || !slices.Equal(login.Scopes, []string{"read"}) || login.Expired(time.Now()) || !login.Expired(time.Now().Add(time.Hour)) {
		t.Errorf("%+v", login)
	}
	text, err := login.String()
	testkit.Must(t, err)
	read, ok := oauth.Parse(text)
	if !ok || read.Access != login.Access || read.Refresh != login.Refresh {
		t.Errorf("stored: %s", text)
	}
	next, err := w.client().Renew(testkit.Context(t), login)
	testkit.Must(t, err)
	if next.Access == login.Access || next.Refresh == login.Refresh || w.access[next.Access] != "read" {
		t.Errorf("renewed: %+v", next)
	}
	if _, err := w.client().Renew(testkit.Context(t), login); !errors.Is(err, oauth.ErrOver) {
		t.Errorf("renewed with a used token: %v", err)
	}
	for _, text := range []string{"token", `{"server":1}`, `{}x`} {
		if _, ok := oauth.Parse(text); ok {
			t.Errorf("%s was parsed as a login", text)
		}
	}
}

// TestGivenClient: a client that is registered already passes its id, and the scopes to request.
func TestGivenClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func() { w.metadata = map[string]any{"registration_endpoint": nil} })
	if _, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: w.follow}); err == nil || !strings.Contains(err.Error(), "registration") {
		t.Errorf("without a registration endpoint: %v", err)
	}
	o := &oauth.Options{ClientID: "given", ClientSecret: "client-secret", Scopes: []string{"read", "write"}, Show: w.follow}
	login, err := w.client().LogIn(testkit.Context(t), o)
	testkit.Must(t, err)
	if w.access[login.Access] != "read write" && w.access[login.Access] != "write read" {
		t.Errorf("scopes %q", w.access[login.Access])
	}
	_, err = w.client().Renew(testkit.Context(t), login)
	testkit.Must(t, err)
	w.set(func() { w.resource = map[string]any{"authorization_servers": []string{w.as.URL + "/x"}} })
	if _, err := w.client().LogIn(testkit.Context(t), &oauth.Options{ClientID: "given", Show: func(address string) error {
		t.Errorf("the user was sent to %s", address)
		return errors.New("nobody goes there")
	}}); err == nil || !strings.Contains(err.Error(), "describe itself") {
		t.Errorf("an authorization server without metadata: %v", err)
	}
	w.set(func() { w.resource = nil })
	o.ClientSecret = "other"
	if _, err := w.client().LogIn(testkit.Context(t), o); err == nil {
		t.Error("a login with a wrong client secret succeeded")
	}
}

// TestRefusedLogIn: untrusted servers are refused, if possible before the person opens their page.
func TestRefusedLogIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*world)
		says   string
		shown  bool
	}{
		"another issuer": {func(w *world) { w.metadata = map[string]any{"issuer": "https://evil.test"} }, "does not match issuer", false},
		"no PKCE":        {func(w *world) { w.metadata = map[string]any{"code_challenge_methods_supported": nil} }, "PKCE", false},
		"no metadata":    {func(w *world) { w.resource = map[string]any{"authorization_servers": []string{w.as.URL + "/x"}} }, "describe itself", false},
		"metadata of another kind": {func(w *world) {
			w.resource, w.described = map[string]any{"authorization_servers": []string{w.as.URL + "/x"}}, "/.well-known/openid-configuration"
		}, "describe itself", false},
		"metadata that has moved":   {func(w *world) { w.moved = w.as.URL + "/moved" }, "bad status 307", false},
		"no authorization server":   {func(w *world) { w.resource = map[string]any{"authorization_servers": []string{}} }, "no authorization servers", false},
		"a page, no address":        {func(w *world) { w.metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"} }, "scheme", false},
		"a login in the clear":      {func(w *world) { w.metadata = map[string]any{"authorization_endpoint": "http://evil.test/"} }, "HTTPS", false},
		"tokens in the clear":       {func(w *world) { w.metadata = map[string]any{"token_endpoint": "http://evil.test/"} }, "HTTPS", false},
		"registration at metadata":  {func(w *world) { w.metadata = map[string]any{"registration_endpoint": "https://169.254.169.254/"} }, "169.254.169.254", false},
		"metadata without end":      {func(w *world) { w.metadata = map[string]any{"x": strings.Repeat("x", 2<<20)} }, "EOF", false},
		"the person refuses":        {func(w *world) { w.redirect = url.Values{"code": nil, "error": {"access_denied"}} }, "access_denied", true},
		"another issuer's answer":   {func(w *world) { w.redirect = url.Values{"iss": {"https://evil.test"}} }, "does not match expected issuer", true},
		"an issuer that is missing": {func(w *world) { w.metadata = map[string]any{"authorization_response_iss_parameter_supported": true} }, "iss parameter", true},
		"a code of somebody else's": {func(w *world) { w.redirect = url.Values{"code": {"other"}} }, "invalid_grant", true},
		"no code":                   {func(w *world) { w.redirect = url.Values{"code": nil} }, "refuses", true},
		"another resource":          {func(w *world) { w.resource = map[string]any{"resource": "https://evil.test/mcp"} }, "describe itself", false},
		"a token that is proved":    {func(w *world) { w.token = map[string]any{"token_type": "DPoP"} }, `"DPoP", not bearer`, true},
		"a token with a line end":   {func(w *world) { w.token = map[string]any{"access_token": "a\r\nX: y"} }, "no header can hold", true},
		"no token":                  {func(w *world) { w.token = map[string]any{"access_token": nil} }, "access_token", true},
		"a broken token endpoint":   {func(w *world) { w.broken = 500 }, "answers 500", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(func() { tt.change(w) })
			shown := false
			_, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: func(address string) error {
				shown = true
				return w.follow(address)
			}})
			if err == nil || !strings.Contains(err.Error(), tt.says) || shown != tt.shown {
				t.Errorf("shown %v: %v", shown, err)
			}
			if len(w.access) != 0 && w.token == nil {
				t.Error("a token was granted")
			}
		})
	}
}

// TestRedirect: a redirect without the state of this login changes nothing, and one with it is accepted once.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: func(address string) error {
		back, err := w.browser(address)
		testkit.Must(t, err)
		at, err := url.Parse(back)
		testkit.Must(t, err)
		q := at.Query()
		for _, wrong := range []url.Values{
			{"code": {"x"}}, {"code": {"x"}, "state": {"wrong"}}, {"code": {"x"}, "state": {""}}, {"code": {"x"}, "state": {q.Get("state"), q.Get("state")}},
		} {
			at.RawQuery = wrong.Encode()
			status, err := visit(at.String())
			testkit.Must(t, err)
			if status != http.StatusBadRequest {
				t.Errorf("%v: %d", wrong, status)
			}
		}
		at.RawQuery = q.Encode()
		at.Path = "/other"
		if status, err := visit(at.String()); err != nil || status != http.StatusBadRequest {
			t.Errorf("another path: %d, %v", status, err)
		}
		resp, err := http.Head(back) // as a link preview does
		testkit.Must(t, err)
		http.DefaultClient.CloseIdleConnections()
		if resp.StatusCode != http.StatusBadRequest || resp.Body.Close() != nil {
			t.Errorf("HEAD: %d", resp.StatusCode)
		}
		if status, err := visit(back); err != nil || status != http.StatusOK {
			t.Errorf("the redirect: %d, %v", status, err)
		}
		if status, err := visit(back); err != nil || status != http.StatusBadRequest {
			t.Errorf("the redirect again: %d, %v", status, err)
		}
		return nil
	}})
	testkit.Must(t, err)
	if n := len(w.access); n != 1 {
		t.Errorf("%d tokens were granted", n)
	}
}

// TestTwoLogIns: concurrent logins do not affect each other.
func TestTwoLogIns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var both, all sync.WaitGroup
	both.Add(2)
	for range 2 {
		all.Go(func() {
			_, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: func(address string) error {
				both.Done()
				both.Wait()
				return w.follow(address)
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(w.access); n != 2 {
		t.Errorf("%d tokens were granted", n)
	}
}

// TestNobodyComes: a login ends when no caller waits for it any more.
func TestNobodyComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	gone := errors.New("nobody came")
	_, err := w.client().LogIn(ctx, &oauth.Options{Show: func(string) error {
		cancel(gone)
		return nil
	}})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: func(string) error { return gone }}); !errors.Is(err, gone) {
		t.Errorf("if the address cannot be shown: %v", err)
	}
	w.set(func() { w.handler = http.NotFoundHandler() })
	w.set(func() { w.open = true })
	if _, err := w.client().LogIn(testkit.Context(t), &oauth.Options{Show: w.follow}); err == nil || !strings.Contains(err.Error(), "asks for no login") {
		t.Errorf("without an MCP server: %v", err)
	}
}

// TestBrowserSentHere: a remote server that names this machine as the login page is refused, even if it may be dialled.
func TestBrowserSentHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, err := url.Parse("https://example.com/mcp")
	testkit.Must(t, err)
	metadata := map[string]any{"issuer": "https://example.com"}
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint"} {
		metadata[name] = "https://localhost/" + name
	}
	w.set(func() {
		w.resource = map[string]any{"resource": at.String(), "authorization_servers": []string{"https://example.com"}}
		w.metadata, w.both = metadata, true
	})
	c := oauth.NewClient(at, &names{Fetcher: w.fetcher(), at: w.mcp.Listener.Addr().String()})
	defer c.Close()
	_, err = c.LogIn(testkit.Context(t), &oauth.Options{ClientID: "given", Show: func(address string) error {
		t.Errorf("the user was sent to %s", address)
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), `names "https://localhost/authorization_endpoint`) {
		t.Error(err)
	}
}

// names dials one name, and records other requested names.
type names struct {
	*fetch.Fetcher
	at string

	mu    sync.Mutex
	asked []string
}

// Dial implements oauth.Dialer.
func (n *names) Dial(ctx context.Context, to fetch.Endpoint) (net.Conn, error) {
	if to.Host() == "example.com" {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", n.at)
	}
	n.mu.Lock()
	n.asked = append(n.asked, to.String())
	n.mu.Unlock()
	return n.Fetcher.Dial(ctx, to)
}

// TestHostileServer: a remote server cannot make a login access this machine, its network, or an unencrypted address.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	var hits sync.Map
	for _, named := range []string{
		"http://127.0.0.1:%s", "https://127.0.0.1:%s", "https://localhost:%s", "http://[::1]:%s", "https://10.0.0.1", "https://169.254.169.254", "http://example.com", "https://user@example.com",
	} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			testkit.Must(t, err)
			defer inner.Close()
			go func() {
				for {
					c, err := inner.Accept()
					if err != nil {
						return
					}
					hits.Store(named, true)
					_ = c.Close()
				}
			}()
			_, port, err := net.SplitHostPort(inner.Addr().String())
			testkit.Must(t, err)
			at, err := url.Parse("https://example.com/mcp")
			testkit.Must(t, err)
			w.set(func() {
				w.resource = map[string]any{"resource": at.String(), "authorization_servers": []string{strings.Replace(named, "%s", port, 1)}}
			})
			roots := w.roots
			n := &names{Fetcher: fetch.New(fetch.Options{RootCAs: roots}), at: w.mcp.Listener.Addr().String()}
			c := oauth.NewClient(at, n)
			defer c.Close()
			_, err = c.LogIn(testkit.Context(t), &oauth.Options{Show: func(address string) error {
				t.Errorf("the user was sent to %s", address)
				return nil
			}})
			if err == nil {
				t.Error("the login succeeded")
			}
		})
	}
	t.Cleanup(func() {
		hits.Range(func(named, _ any) bool {
			t.Errorf("a connection to %s was made", named)
			return true
		})
	})
}

var _ oauth.Dialer = (*names)(nil)

// RootCAs implements oauth.Dialer.
func (n *names) RootCAs() *x509.CertPool { return n.Fetcher.RootCAs() }

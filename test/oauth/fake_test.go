// Package oauth_test tests logins at MCP servers that require them.
package oauth_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// grant is what a fake authorization server has granted.
type grant struct {
	challenge, redirect, resource, scope string
}

// world is an MCP server and its authorization server, both on loopback with TLS. Its fields below mu may be changed while
// it runs.
type world struct {
	t       *testing.T
	mcp, as *httptest.Server
	roots   *x509.CertPool
	server  *sdk.Server
	handler http.Handler

	mu        sync.Mutex
	metadata  map[string]any    // members of the authorization server's metadata that differ from the defaults; nil removes one
	resource  map[string]any    // likewise of the protected resource's
	redirect  url.Values        // parameters of the redirect that differ from the defaults
	expires   int               // lifetime of access tokens in seconds; 0: not stated
	broken    int               // status with which the token endpoint fails; 0: it works
	needs     string            // scope that calls need
	codes     map[string]grant  // that were not used yet
	access    map[string]string // scope by access token
	refresh   map[string]grant
	count     int
	renewals  int
	requests  []string       // paths of requests to the authorization server
	auth      []string       // Authorization of each request to the MCP server
	token     map[string]any // members of the token endpoint's answers that differ from the defaults
	during    func()         // called during a request to the token endpoint
	moved     string         // address that is stated for the authorization server's metadata; "": the usual one
	described string         // path after the usual one that is stated for the protected resource's metadata
	both      bool           // the MCP server is also an authorization server
	open      bool           // the MCP server requires no login
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, roots: x509.NewCertPool(), codes: map[string]grant{}, access: map[string]string{}, refresh: map[string]grant{}, expires: 3600,
		server: sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil),
	}
	w.server.AddTool(&sdk.Tool{Name: "say", Description: "Says hi.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hi"}}}, nil
		})
	w.restart(false)
	quiet := log.New(io.Discard, "", 0)
	w.mcp, w.as = httptest.NewUnstartedServer(http.HandlerFunc(w.serveMCP)), httptest.NewUnstartedServer(http.HandlerFunc(w.serveAS))
	for _, s := range []*httptest.Server{w.mcp, w.as} {
		s.Config.ErrorLog = quiet
		s.StartTLS()
		w.roots.AddCert(s.Certificate())
		t.Cleanup(s.Close)
	}
	t.Cleanup(func() {
		for s := range w.server.Sessions() {
			_ = s.Close() // its client has disconnected
		}
	})
	return w
}

// restart makes the MCP server drop its sessions. Afterwards it answers with JSON, or with streams of events.
func (w *world) restart(json bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return w.server }, &sdk.StreamableHTTPOptions{JSONResponse: json})
}

// set changes fields of the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// address returns the address of the MCP server.
func (w *world) address() string { return w.mcp.URL + "/mcp" }

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// with returns the default members with others replaced.
func with(usual, other map[string]any) map[string]any {
	for name, value := range other {
		if usual[name] = value; value == nil {
			delete(usual, name)
		}
	}
	return usual
}

func (w *world) serveMCP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	handler := w.handler
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
		defer w.mu.Unlock()
		answer(out, http.StatusOK, with(map[string]any{"resource": w.address(), "authorization_servers": []string{w.as.URL}, "scopes_supported": []string{"read"}}, w.resource))
		return
	}
	if w.both && r.URL.Path == "/.well-known/oauth-authorization-server" {
		w.mu.Unlock()
		w.serveAS(out, r)
		return
	}
	w.auth = append(w.auth, r.Header.Get("Authorization"))
	scope, known := w.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	known, needs := known || w.open, w.needs
	w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case !known:
		out.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.mcp.URL+`/.well-known/oauth-protected-resource/mcp`+w.described+`"`)
		http.Error(out, "no token", http.StatusUnauthorized)
	case needs != "" && !slices.Contains(strings.Fields(scope), needs) && bytes.Contains(body, []byte(`"tools/call"`)):
		out.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+needs+` bad\"$(x)"`)
		http.Error(out, "no scope", http.StatusForbidden)
	default:
		handler.ServeHTTP(out, r)
	}
}

func (w *world) serveAS(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.URL.Path)
	q := r.URL.Query()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server", "/moved":
		if r.URL.Path != "/moved" && w.moved != "" {
			http.Redirect(out, r, w.moved, http.StatusTemporaryRedirect)
			return
		}
		answer(out, http.StatusOK, with(map[string]any{
			"issuer": w.as.URL, "authorization_endpoint": w.as.URL + "/authorize", "token_endpoint": w.as.URL + "/token", "registration_endpoint": w.as.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "jwks_uri": w.as.URL + "/keys",
		}, w.metadata))
	case "/register":
		var in map[string]any
		if json.NewDecoder(r.Body).Decode(&in) != nil || in["token_endpoint_auth_method"] != "none" {
			http.Error(out, "no registration", http.StatusBadRequest)
			return
		}
		in["client_id"] = "registered"
		answer(out, http.StatusCreated, in)
	case "/authorize":
		w.count++
		code := fmt.Sprintf("code-%d", w.count)
		if q.Get("code_challenge_method") == "S256" {
			w.codes[code] = grant{q.Get("code_challenge"), q.Get("redirect_uri"), q.Get("resource"), q.Get("scope")}
		}
		back := url.Values{"code": {code}, "state": {q.Get("state")}}
		for name, values := range w.redirect {
			back[name] = values
		}
		http.Redirect(out, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	case "/token":
		w.serveToken(out, r)
	default:
		http.NotFound(out, r)
	}
}

func (w *world) serveToken(out http.ResponseWriter, r *http.Request) {
	if w.broken != 0 { // and shows the request, like an error page for developers
		http.Error(out, "broken: "+r.FormValue("refresh_token")+r.FormValue("code_verifier"), w.broken)
		return
	}
	if w.during != nil {
		w.during()
	}
	var g grant
	var ok bool
	switch r.FormValue("grant_type") {
	case "authorization_code":
		g, ok = w.codes[r.FormValue("code")]
		delete(w.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		ok = ok && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge && r.FormValue("redirect_uri") == g.redirect
	case "refresh_token":
		w.renewals++
		g, ok = w.refresh[r.FormValue("refresh_token")]
		if _, stays := w.token["refresh_token"]; !stays {
			delete(w.refresh, r.FormValue("refresh_token"))
		}
	}
	id, secret, basic := r.BasicAuth()
	known := !basic && r.FormValue("client_id") == "registered" ||
		cmp.Or(id, r.FormValue("client_id")) == "given" && cmp.Or(secret, r.FormValue("client_secret")) == "client-secret"
	if !ok || !known || r.FormValue("resource") != g.resource || g.resource != w.address() {
		answer(out, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "no \x1b[31m"})
		return
	}
	w.count++
	access, refresh := fmt.Sprintf("access-%d-CANARY", w.count), fmt.Sprintf("refresh-%d-CANARY", w.count)
	w.access[access], w.refresh[refresh] = g.scope, g
	token := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "scope": g.scope}
	if w.expires != 0 {
		token["expires_in"] = w.expires
	}
	answer(out, http.StatusOK, with(token, w.token))
}

// revoke makes the MCP server refuse all access tokens granted so far.
func (w *world) revoke() { w.set(func() { w.access = map[string]string{} }) }

// browser opens the address of a login, and returns the address of the redirect without following it.
func (w *world) browser(address string) (string, error) {
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: w.as.Client().Transport.(*http.Transport).TLSClientConfig, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get(address)
	if err != nil {
		return "", err
	}
	return resp.Header.Get("Location"), resp.Body.Close()
}

// visit gets an address, and returns the status.
func visit(address string) (int, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	resp, err := client.Get(address)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

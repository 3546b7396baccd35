package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Options configure a login.
type Options struct {
	// ClientID and ClientSecret are those of a registered client. Without them LogIn registers one (RFC 7591).
	ClientID, ClientSecret string
	Scopes                 []string // to request; nil: those that the server names
	// Show asks the user to open an address in a browser.
	Show func(address string) error
}

// LogIn lets the user log in, and returns the login. It waits for the user until ctx ends.
func (c *Client) LogIn(ctx context.Context, o *Options) (*Login, error) {
	back, err := listen()
	if err != nil {
		return nil, err
	}
	defer back.close()
	login := &Login{Server: c.server, ClientID: o.ClientID}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.address, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: c.web,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			at, err := c.authorization(args.URL)
			if err != nil {
				return nil, err
			}
			login.Resource = at.Query().Get("resource")
			answer := back.expect(at.Query().Get("state"))
			if err := o.Show(args.URL); err != nil {
				return nil, err
			}
			select {
			case a := <-answer:
				return &a.AuthorizationResult, a.refused
			case <-ctx.Done():
				return nil, fmt.Errorf("wait for the browser: %w", context.Cause(ctx))
			}
		},
		NewTokenSource: func(_ context.Context, used *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			login.TokenURL, login.ClientID, login.ClientSecret = used.Endpoint.TokenURL, used.ClientID, used.ClientSecret
			login.AuthStyle, login.Scopes = int64(used.Endpoint.AuthStyle), used.Scopes
			return oauth2.StaticTokenSource(token), login.take(token)
		},
	}
	if o.Scopes != nil {
		config.ScopeFilter = func([]string) []string { return o.Scopes }
	}
	if o.ClientID != "" {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID}
		if o.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "pwos", RedirectURIs: []string{back.address}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return nil, err
	}
	asked, answer, err := c.ask(ctx)
	if err != nil {
		return nil, err
	}
	c.guard.undescribed = true
	err = handler.Authorize(ctx, asked, answer)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = refusalOf(refused)
	}
	if err != nil {
		return nil, err
	}
	return login, nil
}

// hello is the first request to an MCP server.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"pwos","version":"1"}}}`

// ask sends the MCP server a request without a token: the refusal names the authorization server.
func (c *Client) ask(ctx context.Context) (*http.Request, *http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server, strings.NewReader(hello))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := c.web.Do(r)
	if err != nil {
		return nil, nil, fmt.Errorf("ask server: %w", err)
	}
	_ = answer.Body.Close() // the body is not needed
	answer.Body = http.NoBody
	if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusOK { // some servers ask for a login later
		return nil, nil, fmt.Errorf("the server asks for no login: it answers %d, not 401", answer.StatusCode)
	}
	return r, answer, nil
}

// authorization checks the address to which the browser is sent.
func (c *Client) authorization(address string) (*url.URL, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read authorization endpoint: %w", err)
	}
	if c.guard.undescribed {
		return nil, errUndescribed
	}
	return at, c.guard.check(at)
}

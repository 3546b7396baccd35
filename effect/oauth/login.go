package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/promptware-os/pwos/schema"
)

// Login is a login, which is stored sealed.
type Login struct {
	Server       string   `json:"server"`   // address of the MCP server, which gets the tokens
	Resource     string   `json:"resource"` // its name at the authorization server (RFC 8707)
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitzero"`
	AuthStyle    int64    `json:"auth_style"` // authentication of the client: an oauth2.AuthStyle
	Scopes       []string `json:"scopes,omitzero"`
	Access       string   `json:"access"`
	Refresh      string   `json:"refresh,omitzero"` // "": it cannot be renewed
	Expires      int64    `json:"expires,omitzero"` // Unix seconds; 0: unknown
}

// Parse reads a stored login. ok is false for any other secret, such as a bearer token.
func Parse(secret string) (l *Login, ok bool) {
	if !strings.HasPrefix(secret, "{") {
		return nil, false
	}
	in, err := schema.TypeOf[Login]().DecodeUntrusted([]byte(secret))
	if err != nil {
		return nil, false
	}
	return in.(*Login), true
}

// String returns the login in the form that is sealed.
func (l *Login) String() (string, error) {
	text, err := schema.Marshal(l)
	return string(text), err
}

// early is the time before its expiry at which a token counts as expired, so that it is valid when it arrives.
const early = 30 * time.Second

// Expired reports whether the access token has expired.
func (l *Login) Expired(now time.Time) bool { return expired(l.Expires, now) }

func expired(at int64, now time.Time) bool { return at != 0 && now.Add(early).Unix() >= at }

// Read implements Source.
func (c *Client) Read(stored string) *Tokens {
	l, ok := Parse(stored)
	if !ok {
		return nil
	}
	return &Tokens{Access: l.Access, Expires: l.Expires, Scopes: l.Scopes, Elsewhere: l.Server != c.server}
}

// Next implements Source.
func (c *Client) Next(ctx context.Context, stored string) (string, error) {
	l, ok := Parse(stored)
	if !ok {
		return "", ErrOver
	}
	next, err := c.Renew(ctx, l)
	if err != nil {
		return "", err
	}
	return next.String()
}

// ErrOver means that a login cannot be renewed: the authorization server refuses that, or issued no refresh token.
var ErrOver = errors.New("the login has ended")

// Renew returns the next login, with a new access token. The error is ErrOver if another LogIn is needed.
func (c *Client) Renew(ctx context.Context, l *Login) (*Login, error) {
	if l.Refresh == "" {
		return nil, ErrOver
	}
	config := &oauth2.Config{
		ClientID: l.ClientID, ClientSecret: l.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: oauth2.AuthStyle(l.AuthStyle)},
	}
	// A TokenSource cannot send the resource, which MCP requires. An empty code is ignored (RFC 6749, 3.2).
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.web), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", l.Refresh), oauth2.SetAuthURLParam("resource", l.Resource))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if status := refused.Response.StatusCode; status/100 == 4 && status != http.StatusTooManyRequests {
			return nil, fmt.Errorf("%w: %w", ErrOver, refusalOf(refused))
		}
		err = refusalOf(refused)
	}
	if err != nil {
		return nil, fmt.Errorf("renew login: %w", err)
	}
	next := *l
	return &next, next.take(token)
}

// refusalOf returns the error of an authorization server without its text, which may repeat secrets.
func refusalOf(r *oauth2.RetrieveError) error {
	return fmt.Errorf("the authorization server answers %d %.100q", r.Response.StatusCode, r.ErrorCode)
}

// take sets the token of a login.
func (l *Login) take(token *oauth2.Token) error {
	switch {
	case !strings.EqualFold(cmp.Or(token.TokenType, "bearer"), "bearer"):
		return fmt.Errorf("the authorization server gave a token of the type %.100q, not bearer", token.TokenType)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the authorization server gave a token that no header can hold")
	}
	l.Access, l.Refresh, l.Expires = token.AccessToken, token.RefreshToken, 0 // without a new refresh token the old one stays
	if !token.Expiry.IsZero() {
		l.Expires = token.Expiry.Unix()
	}
	if scope, ok := token.Extra("scope").(string); ok {
		l.Scopes = strings.Fields(scope)
	}
	return nil
}

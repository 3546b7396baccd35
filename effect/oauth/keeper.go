package oauth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Source reads and renews the logins of one kind. A *Client does for an MCP server.
type Source interface {
	// Read reads a stored login; nil for a bearer token, which is sent as it is stored.
	Read(stored string) *Tokens
	// Next renews a stored login, and returns what is stored next. The error is ErrOver if another login is needed; a *fault.Fault is
	// for the agent.
	Next(ctx context.Context, stored string) (string, error)
}

// Tokens are what a keeper knows of a login.
type Tokens struct {
	Access    string
	Expires   int64 // Unix seconds; 0: unknown
	Scopes    []string
	Elsewhere bool // it was made for another server
}

// Keeper provides the credential of one server for each request: a login, which it renews, or a stored bearer token.
type Keeper struct {
	Source Source
	Name   string   // of the server, for errors
	LogIn  []string // command that logs in, for errors; nil: the credential is a bearer token, and Fix is the fix
	Fix    string
	Secure bool // whether the connection is encrypted or on loopback, so that a credential may be sent
	// Load returns the stored credential, or "". Its error is a *fault.Fault.
	Load func(context.Context) (string, error)
	// Store replaces the credential that Load has returned by the next login, unless another one is stored.
	Store func(ctx context.Context, loaded, next string) error
	// Turn has room for one, and is full while the login is renewed. All Keepers of the stored value share it.
	Turn chan struct{}
	Now  func() time.Time
	Note func(text string, err error) // logs an error

	mu      sync.Mutex
	tries   int      // number of renewals that have ended
	failed  error    // of the last renewal, or nil
	refused string   // access token that the server has refused, to be renewed
	last    string   // credential without a next one: a bearer token, or a renewed token until the server accepts it
	over    string   // access token of the login that has ended
	scopes  []string // of the last used login
}

// Secret returns the credential for a request, or "". Its error is a *fault.Fault.
func (k *Keeper) Secret(ctx context.Context) (string, error) {
	stored, err := k.Load(ctx)
	if err != nil || stored == "" {
		return "", err
	}
	if !k.Secure {
		return "", fault.UpstreamNoCredential.New("the credential of %s is not sent over http: name its https: address", k.Name)
	}
	login := k.Source.Read(stored)
	if login == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.last = stored
		return stored, nil
	}
	if k.good(login) {
		return login.Access, nil
	}
	return k.renew(ctx)
}

// good reports whether the access token of a login may be used.
func (k *Keeper) good(l *Tokens) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.scopes = l.Scopes
	return !l.Elsewhere && !expired(l.Expires, k.Now()) && l.Access != k.refused && l.Access != k.over
}

// renew lets one request renew the login; concurrent ones wait, and get the same result.
func (k *Keeper) renew(ctx context.Context) (string, error) {
	before, _ := k.tried()
	waiting, cancel := context.WithTimeout(ctx, RenewalTime)
	defer cancel()
	select {
	case k.Turn <- struct{}{}:
		defer func() { <-k.Turn }()
	case <-waiting.Done():
		return "", k.Renewing()
	}
	if now, failed := k.tried(); now != before && failed != nil {
		return "", failed
	}
	secret, err := k.renewed(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries, k.failed = k.tries+1, err
	return secret, err
}

// RenewalTime bounds a renewal, unless its Source takes longer, and how long a request waits for that of another.
const RenewalTime = 2 * exchangeTime

// Renewing returns the error of a request that has waited for long enough.
func (k *Keeper) Renewing() error {
	return fault.UpstreamToken.New("the login of %s is still being renewed: send the request again", k.Name)
}

// tried returns the number of renewals that have ended, and the error of the last one.
func (k *Keeper) tried() (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tries, k.failed
}

// renewed renews the login, unless another request has done so. It is this one's turn.
func (k *Keeper) renewed(ctx context.Context) (string, error) {
	// The renewal continues if the caller disconnects: a token that is received and not stored would be lost, and the old
	// one is no longer valid.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RenewalTime)
	defer cancel()
	stored, err := k.Load(ctx)
	if err != nil {
		return "", err
	}
	login := k.Source.Read(stored)
	switch {
	case login == nil:
		return stored, nil
	case k.good(login):
		return login.Access, nil
	case login.Elsewhere:
		return "", k.needed("its login was made for another address")
	}
	k.mu.Lock()
	over := login.Access == k.over
	k.mu.Unlock()
	if over {
		return "", k.needed("its login has ended")
	}
	text, err := k.Source.Next(ctx, stored)
	if errors.Is(err, ErrOver) {
		k.Note("the login cannot be renewed", err)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = login.Access
		return "", k.needed("its login has ended")
	}
	if err != nil {
		if told, ok := errors.AsType[*fault.Fault](err); ok {
			return "", told
		}
		k.Note("the login was not renewed", err)
		return "", fault.UpstreamFailed.New("the authorization server of %s did not renew the login: try again later", k.Name)
	}
	next := k.Source.Read(text)
	if next == nil {
		return "", k.needed("its login has ended")
	}
	if err := k.Store(ctx, stored, text); err != nil {
		k.Note("the renewed login was not stored", err)
		return "", fault.UpstreamFailed.New("the renewed login of %s was not stored: try again", k.Name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.refused = next.Access, ""
	return next.Access, nil
}

// needed returns the error of a request that needs another login.
func (k *Keeper) needed(why string) error {
	return fault.UpstreamLogin.New("%s: %s", k.Name, why).WithFix("%s", k.fix())
}

// fix returns the fix, with the arguments more for a login.
func (k *Keeper) fix(more ...string) string {
	if k.LogIn == nil {
		return k.Fix
	}
	return "log in with " + quote.Command(slices.Concat(k.LogIn, more)...)
}

// Answered checks the status and header of an answer to a request with a credential. If it returns an error, the agent
// gets that instead of the answer.
func (k *Keeper) Answered(secret string, status int, header http.Header) error {
	if status == http.StatusForbidden {
		return k.lacking(header)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case status != http.StatusUnauthorized:
		if secret == k.last {
			k.last = ""
		}
		return nil
	case secret == "":
		return k.needed("it asks for a login")
	case secret == k.last:
		k.over = secret
		return k.needed("it refuses the credential")
	}
	k.refused = secret
	return fault.UpstreamToken.New("%s does not take the access token any more: send the request again", k.Name)
}

// lacking returns the error of a login with fewer scopes than the server requires; nil if it refuses for another
// reason. The command in the fix requests the scopes of the login too.
func (k *Keeper) lacking(header http.Header) error {
	challenges, err := oauthex.ParseWWWAuthenticate(header.Values("Www-Authenticate"))
	if err != nil {
		return nil // the agent gets the answer
	}
	i := slices.IndexFunc(challenges, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
	if i < 0 {
		return nil
	}
	k.mu.Lock()
	scopes := slices.Concat(k.scopes, strings.Fields(challenges[i].Params["scope"]))
	k.mu.Unlock()
	slices.Sort(scopes)
	var more []string
	long := 0
	for _, scope := range slices.Compact(scopes) {
		if long += len(" --scope ") + len(scope); long <= 512 && strings.Trim(scope, scopeLetters) == "" {
			more = append(more, "--scope", scope)
		}
	}
	return fault.UpstreamLogin.New("%s asks for more than its login was made for", k.Name).WithFix("%s", k.fix(more...))
}

// scopeLetters are the characters of the scopes that a fix repeats: a server has chosen them.
const scopeLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/"

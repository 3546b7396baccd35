package login

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/schema"
)

// tokens are what the file of a login has.
type tokens struct {
	oauth.Tokens
	account string
}

// early is the time before the end of an access token at which it is renewed, before the host would do so at its start. Of one that does
// not last long it is a quarter.
const early = 10 * time.Minute

// parse reads the text of the file; nil if it has no tokens that can be renewed.
func parse(text string) *tokens {
	all := members([]byte(text))["tokens"]
	access, refresh := member(all, "access_token"), member(all, "refresh_token")
	if access == "" || refresh == "" || strings.ContainsFunc(access, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil
	}
	t := &tokens{Tokens: oauth.Tokens{Access: access}, account: member(all, "account_id")}
	if strings.ContainsFunc(t.account, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil
	}
	if end := seconds(access, "exp"); end != 0 {
		t.Expires = end - min(int64(early/time.Second), max(0, end-seconds(access, "iat"))/4)
	}
	return t
}

// seconds returns a time that a JSON Web Token has, in Unix seconds; 0: it has none.
func seconds(token, claim string) int64 {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return 0
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return 0
	}
	at, invalid := schema.TypeOf[int64]().DecodeUntrusted(members(claims)[claim])
	if invalid != nil {
		return 0
	}
	return *at.(*int64)
}

// headers are those that the vendor's server needs besides the access token.
func (t *tokens) headers() map[string]string {
	if t.account == "" {
		return nil
	}
	return map[string]string{"ChatGPT-Account-ID": t.account}
}

// members returns the members of a JSON object; nil for any other text.
func members(text []byte) map[string]schema.Value {
	all, invalid := schema.TypeOf[map[string]schema.Value]().DecodeUntrusted(text)
	if invalid != nil {
		return nil
	}
	return *all.(*map[string]schema.Value)
}

// member returns a member of a JSON object that is a text; "" if it has none.
func member(object []byte, name string) string {
	text, invalid := schema.TypeOf[string]().DecodeUntrusted(members(object)[name])
	if invalid != nil {
		return ""
	}
	return *text.(*string)
}

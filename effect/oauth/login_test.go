package oauth_test

import (
	"testing"

	"github.com/promptware-os/pwos/effect/oauth"
)

// TestParse: a sealed secret may be any text, not only a login or JSON.
func TestParse(t *testing.T) {
	t.Parallel()
	const login = `{"client_id":"c","access":"a"`
	for _, secret := range []string{"", "sk-1", "{", "{}", login, login + "}}", `{"access":"a","access":"b"}`, "[1]"} {
		if l, ok := oauth.Parse(secret); ok {
			t.Errorf("%q is the login %+v", secret, l)
		}
	}
}

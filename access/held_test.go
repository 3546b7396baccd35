package access_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

func held(t *testing.T, s *access.Sealer) *access.Held {
	t.Helper()
	return must(s.Hold(t.Context()))(t)
}

// TestHeldIsTheSealer: what one seals the other opens, in either direction, and each refuses the same.
func TestHeldIsTheSealer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ed25519", "rsa3072"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enrolled(t, name)
			h := held(t, s)
			if h.Key() != s.Key() || h.KeyID() != s.KeyID() || h.Algorithm() != "A256GCM" {
				t.Errorf("held %s of %v, sealer %s of %v", h.KeyID(), h.Key(), s.KeyID(), s.Key())
			}
			for _, aad := range []string{"", "vault/fish"} {
				theirs := must(s.Seal(t.Context(), []byte("swordfish"), []byte(aad)))(t)
				if plaintext, along, err := h.Open(theirs); err != nil || string(plaintext) != "swordfish" || string(along) != aad {
					t.Errorf("held, it opens %q, %q, %v", plaintext, along, err)
				}
				ours := must(h.Seal([]byte("swordfish"), []byte(aad)))(t)
				if plaintext, along, err := s.Open(t.Context(), ours); err != nil || string(plaintext) != "swordfish" || string(along) != aad {
					t.Errorf("the sealer opens %q, %q, %v", plaintext, along, err)
				}
				if again := must(h.Seal([]byte("swordfish"), []byte(aad)))(t); again == ours {
					t.Error("two seals of a value are equal")
				}
			}
			_, err := h.Seal(make([]byte, access.MaxPlaintext+1), nil)
			refused(t, err, fault.CryptoCannot)
			_, _, err = h.Open("swordfish")
			if e := refused(t, err, fault.CryptoBroken); strings.Contains(e.Message, "swordfish") {
				t.Errorf("the error repeats the input: %s", e.Message)
			}
			good := must(h.Seal([]byte("swordfish"), nil))(t)
			_, _, err = h.Open(good[:len(good)-4] + "AAAA")
			refused(t, err, fault.CryptoBroken)
			_, _, err = held(t, enrolled(t, map[string]string{"ed25519": "rsa3072", "rsa3072": "ed25519"}[name])).Open(good)
			refused(t, err, fault.CryptoOtherKey)
		})
	}
}

// TestHeldOpensVectors: a held key opens values sealed by another implementation, by any signature
// algorithm of an RSA key.
func TestHeldOpensVectors(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(vector(t, "sealed")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		text, want, _ := strings.Cut(rest, " ")
		if got, _, err := held(t, enrolled(t, name)).Open(text); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestHeldNeedsNoAgent: a held key works after its agent stops signing. An agent that signs only
// with SHA-2 is enough to derive it.
func TestHeldNeedsNoAgent(t *testing.T) {
	t.Parallel()
	from := newFakeAgent(t, "rsa3072")
	from.sign = func(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
		if flags == 0 {
			return nil, errors.New("no SHA-1 here")
		}
		return from.ExtendedAgent.SignWithFlags(key, data, flags)
	}
	found := must((&access.Identities{AgentSocket: from.serve(t)}).Find(t.Context()))(t)
	h := held(t, must(access.Enroll(t.Context(), found.Signers[0]))(t))
	text := must(h.Seal([]byte("swordfish"), nil))(t)
	if err := from.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if plaintext, _, err := h.Open(text); err != nil || string(plaintext) != "swordfish" {
		t.Errorf("opened as %q, %v", plaintext, err)
	}
	again := must(access.Enroll(t.Context(), identity(t, keyFile(t, "rsa3072"))))(t)
	if plaintext, _, err := again.Open(t.Context(), text); err != nil || string(plaintext) != "swordfish" {
		t.Errorf("from the file it opens as %q, %v", plaintext, err)
	}
}

// TestHoldEnds: the derivation of a key stops with its context.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	found := must((&access.Identities{AgentSocket: newFakeAgent(t, "ed25519").serve(t)}).Find(t.Context()))(t)
	s := must(access.Enroll(t.Context(), found.Signers[0]))(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.Hold(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

package access_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// enrolled returns a sealer of the key of a vector.
func enrolled(t testing.TB, name string) *access.Sealer {
	t.Helper()
	return must(access.Enroll(t.Context(), identity(t, keyFile(t, name))))(t)
}

// TestSealRoundTrip: a sealed value opens, with its clear data, and does not contain the plaintext.
func TestSealRoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ed25519", "rsa3072"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enrolled(t, name)
			for _, c := range []struct{ plaintext, aad string }{
				{"", ""},
				{"swordfish", ""},
				{"swordfish", "vault/fish"},
				{"\x00\xff\n" + strings.Repeat("x", 10_000), strings.Repeat("y", access.MaxAAD)},
			} {
				text := must(s.Seal(t.Context(), []byte(c.plaintext), []byte(c.aad)))(t)
				if !strings.HasPrefix(text, "pwenc:v1:") || strings.Contains(text, "swordfish") {
					t.Errorf("got %.40s", text)
				}
				if again := must(s.Seal(t.Context(), []byte(c.plaintext), []byte(c.aad)))(t); again == text {
					t.Error("two seals of a value are equal")
				}
				plaintext, aad, err := s.Open(t.Context(), text)
				if err != nil || string(plaintext) != c.plaintext || string(aad) != c.aad {
					t.Errorf("got %q, %q, %v", plaintext, aad, err)
				}
				if again := must(access.ParseSealed(text))(t).String(); again != text {
					t.Errorf("%s is formatted as %s", text, again)
				}
			}
			_, err := s.Seal(t.Context(), make([]byte, access.MaxPlaintext+1), nil)
			refused(t, err, fault.CryptoCannot)
			_, err = s.Seal(t.Context(), nil, make([]byte, access.MaxAAD+1))
			refused(t, err, fault.CryptoCannot)
			big := must(s.Seal(t.Context(), make([]byte, access.MaxPlaintext), make([]byte, access.MaxAAD)))(t)
			if _, _, err := s.Open(t.Context(), big); err != nil {
				t.Error("the longest value does not open:", err)
			}
		})
	}
}

// TestSealVectors: values that another program sealed through OpenSSH's agent open here, whichever
// hash it requested.
func TestSealVectors(t *testing.T) {
	t.Parallel()
	sealers := map[string]*access.Sealer{"ed25519": enrolled(t, "ed25519"), "rsa3072": enrolled(t, "rsa3072")}
	lines := strings.Split(strings.TrimSpace(vector(t, "sealed")), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d vectors", len(lines))
	}
	for _, line := range lines {
		name, text, want := strings.Fields(line)[0], strings.Fields(line)[1], strings.Fields(line)[2]
		plaintext, _, err := sealers[name].Open(t.Context(), text)
		if err != nil || string(plaintext) != want {
			t.Errorf("%s %s: %q, %v", name, want, plaintext, err)
		}
		if sealed := must(access.ParseSealed(text))(t); sealed.Fingerprint() != vectorKey(t, name).Fingerprint() {
			t.Errorf("the value names the key %s", sealed.Fingerprint())
		}
	}
	key := sealers["ed25519"]
	digest, _ := strings.CutPrefix(key.Key().Fingerprint(), "SHA256:")
	if want := "ssh-fp:SHA256:" + strings.NewReplacer("+", "-", "/", "_").Replace(digest); key.KeyID() != want {
		t.Errorf("the key id is %s, want %s", key.KeyID(), want)
	}
}

// TestSealedBitFlips: a sealed value with any bit flipped, in the text or in the decoded bytes, does not open.
func TestSealedBitFlips(t *testing.T) {
	t.Parallel()
	s := enrolled(t, "ed25519")
	text := []byte(must(s.Seal(t.Context(), []byte("swordfish"), []byte("vault/fish")))(t))
	opens := func(text []byte) bool {
		plaintext, _, err := s.Open(t.Context(), string(text))
		if err != nil && strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%v reveals the secret", err)
		}
		return err == nil || plaintext != nil
	}
	flip := func(in []byte, as func([]byte) []byte) {
		for i := range in {
			for bit := range 8 {
				in[i] ^= 1 << bit
				if opens(as(in)) {
					t.Fatalf("the value opens with bit %d of byte %d flipped", bit, i)
				}
				in[i] ^= 1 << bit
			}
		}
		if !opens(as(in)) {
			t.Fatal("the unchanged value does not open")
		}
	}
	flip(text, func(b []byte) []byte { return b })
	raw := must(base64.RawURLEncoding.DecodeString(string(text[len("pwenc:v1:"):])))(t)
	wrap := func(b []byte) []byte { return []byte("pwenc:v1:" + base64.RawURLEncoding.EncodeToString(b)) }
	flip(raw, wrap)
	members := *must(decode[map[string]schema.Value](raw))(t)
	for _, name := range []string{"nonce", "ct", "aad"} {
		value := must(base64.RawURLEncoding.DecodeString(strings.Trim(string(members[name]), `"`)))(t)
		flip(value, func(b []byte) []byte {
			changed := map[string]schema.Value{}
			for n, v := range members {
				changed[n] = v
			}
			changed[name] = schema.Value(`"` + base64.RawURLEncoding.EncodeToString(b) + `"`)
			return wrap(must(schema.Marshal(changed))(t))
		})
	}
}

func decode[T any](raw []byte) (*T, error) {
	v, fault := schema.TypeOf[T]().Decode(raw)
	if fault != nil {
		return nil, fault
	}
	return v.(*T), nil
}

// TestSealedForms: a malformed sealed value is refused, and the error repeats no part of it.
func TestSealedForms(t *testing.T) {
	t.Parallel()
	s := enrolled(t, "ed25519")
	wrap := func(text string) string {
		return "pwenc:v1:" + base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	members := func(kid, nonce, ct, more string) string {
		return wrap(fmt.Sprintf(`{"v":1,"kid":%q,"alg":"A256GCM","nonce":%q,"ct":%q%s}`, kid, nonce, ct, more))
	}
	const nonce, ct = "AAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA"
	kid := s.KeyID()
	must(access.ParseSealed(members(kid, nonce, ct, "")))(t)
	must(access.ParseSealed(members(kid, nonce, ct, `,"aad":"AAAA","ts":1735000000`)))(t)
	good := members(kid, nonce, ct, "")
	for name, text := range map[string]string{
		"empty":                 "",
		"plain":                 "swordfish",
		"no payload":            "pwenc:v1:",
		"version 2":             "pwenc:v2:" + good[9:],
		"blanks before":         " " + good,
		"a line end":            good + "\n",
		"a line end within":     good[:40] + "\n" + good[40:],
		"padded":                good + "=",
		"plain base64":          "pwenc:v1:" + base64.StdEncoding.EncodeToString([]byte(`{"a":"???>>>"}`)),
		"two of them":           good + good,
		"no JSON":               wrap("swordfish"),
		"an array":              wrap("[]"),
		"null":                  wrap("null"),
		"JSON and more":         wrap(`{"v":1} {}`),
		"a member twice":        members(kid, nonce, ct, `,"v":1`),
		"an unknown member":     members(kid, nonce, ct, `,"x":1`),
		"v is 2":                wrap(`{"v":2,"kid":"` + kid + `","alg":"A256GCM","nonce":"` + nonce + `","ct":"` + ct + `"}`),
		"v is a string":         wrap(`{"v":"1","kid":"` + kid + `","alg":"A256GCM","nonce":"` + nonce + `","ct":"` + ct + `"}`),
		"another alg":           wrap(`{"v":1,"kid":"` + kid + `","alg":"none","nonce":"` + nonce + `","ct":"` + ct + `"}`),
		"no kid":                wrap(`{"v":1,"alg":"A256GCM","nonce":"` + nonce + `","ct":"` + ct + `"}`),
		"a kid of MD5":          members("ssh-fp:MD5:"+kid[14:], nonce, ct, ""),
		"a short kid":           members(kid[:30], nonce, ct, ""),
		"a kid in two letters":  members("ssh-fp:SHA256:-/"+strings.Repeat("A", 41), nonce, ct, ""),
		"a kid with loose bits": members("ssh-fp:SHA256:"+strings.Repeat("A", 42)+"B", nonce, ct, ""),
		"a short nonce":         members(kid, nonce[:12], ct, ""),
		"a long nonce":          members(kid, nonce+"AAAA", ct, ""),
		"a nonce with escapes":  wrap(`{"v":1,"kid":"` + kid + `","alg":"A256GCM","nonce":"\u0041` + nonce[1:] + `","ct":"` + ct + `"}`),
		"no tag":                members(kid, nonce, ct[:20], ""),
		"loose bits":            members(kid, nonce, ct[:21]+"B", ""),
		"an empty aad":          members(kid, nonce, ct, `,"aad":""`),
		"an aad of null":        members(kid, nonce, ct, `,"aad":null`),
		"an aad too long":       members(kid, nonce, ct, `,"aad":"`+strings.Repeat("AAAA", 400)+`"`),
		"deep":                  wrap(strings.Repeat("[", 200)),
		"too long":              members(kid, nonce, ct, strings.Repeat(" ", 2<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := access.ParseSealed(text)
			e := refused(t, err, fault.CryptoBroken)
			if strings.Contains(e.Message, "swordfish") || fault.Of(err).Code() != 422 {
				t.Errorf("got %d, %q", fault.Of(err).Code(), e.Message)
			}
		})
	}
	_, _, err := s.Open(t.Context(), good)
	refused(t, err, fault.CryptoBroken)
	other := must(enrolled(t, "rsa3072").Seal(t.Context(), []byte("x"), nil))(t)
	_, _, err = s.Open(t.Context(), other)
	if e := refused(t, err, fault.CryptoOtherKey); !strings.Contains(e.Message, vectorKey(t, "rsa3072").Fingerprint()) {
		t.Errorf("%q does not name the key", e.Message)
	}
}

// TestEnroll: a key that signs the same text differently each time is refused, by its type or by a
// trial.
func TestEnroll(t *testing.T) {
	t.Parallel()
	for _, s := range []*access.Signer{newSigner(t, "p256"), newSigner(t, "p384")} {
		_, err := access.Enroll(t.Context(), s)
		refused(t, err, fault.CryptoCannot)
	}
	seed := make([]byte, ed25519.SeedSize)
	loose := must(access.NewSigner(&looseKey{seed}, "a card"))(t)
	must(loose.Sign(t.Context(), access.Namespace, []byte("x")))(t) // its signatures verify
	_, err := access.Enroll(t.Context(), loose)
	if e := refused(t, err, fault.CryptoCannot); fault.Of(err).Code() != 422 {
		t.Errorf("got %v", e)
	}
	liar := newFakeAgent(t, "ed25519")
	other := newKey(t, "ed25519")
	liar.sign = func(_ ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
		return other.Sign(rand.Reader, data)
	}
	found := must((&access.Identities{AgentSocket: liar.serve(t)}).Find(t.Context()))(t)
	_, err = access.Enroll(t.Context(), found.Signers[0])
	refused(t, err, fault.AuthAgentLied)
}

// looseKey is an ed25519 key that signs with a fresh nonce each time, as some cards do. Its signatures verify.
type looseKey struct{ seed []byte }

func (k *looseKey) PublicKey() ssh.PublicKey {
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(k.seed).Public())
	if err != nil {
		panic(err)
	}
	return key
}

func (k *looseKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	scalar := func(seed []byte) *big.Int {
		h := sha512.Sum512(seed)
		h[0] &= 248
		h[31] = h[31]&127 | 64
		slices.Reverse(h[:32])
		return new(big.Int).SetBytes(h[:32])
	}
	nonce := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(nonce)
	public := func(seed []byte) []byte { return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey) }
	point := public(nonce)
	h := sha512.Sum512(append(append(bytes.Clone(point), public(k.seed)...), data...))
	slices.Reverse(h[:])
	sum := new(big.Int).SetBytes(h[:])
	sum.Mul(sum, scalar(k.seed)).Add(sum, scalar(nonce)).Mod(sum, order)
	low := sum.FillBytes(make([]byte, 32))
	slices.Reverse(low)
	return &ssh.Signature{Format: ssh.KeyAlgoED25519, Blob: append(point, low...)}, nil
}

// TestSealStopsWithItsAgent: after its agent has ended, a sealer reports that, and not a broken
// seal.
func TestSealStopsWithItsAgent(t *testing.T) {
	t.Parallel()
	f := newFakeAgent(t, "rsa3072")
	socket := f.serve(t)
	signer := must((&access.Identities{AgentSocket: socket}).Find(t.Context()))(t).Signers[0]
	s := must(access.Enroll(t.Context(), signer))(t)
	text := must(s.Seal(t.Context(), []byte("x"), nil))(t)
	if err := f.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Open(t.Context(), text)
	refused(t, err, fault.AuthAgentNo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Seal(ctx, []byte("x"), nil); err == nil {
		t.Error("the sealer seals after its context has ended")
	}
}

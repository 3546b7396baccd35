package access_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestLogin: a key of each accepted type logs in, and the first login pins the kernel's key.
func TestLogin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ed25519", "ecdsa256", "ecdsa384", "rsa3072"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, name)
			for first := true; ; first = false {
				c := w.challenge(t)
				answer := w.answer(t, c)
				if answer.Fresh != first || answer.Host != w.host.Key() || answer.Key != vectorKey(t, name) {
					t.Errorf("got %+v", answer)
				}
				key := must(c.Verify(answer.Data))(t)
				if key.Key != answer.Key || key.Agent != nil || key.Line != 1 {
					t.Errorf("admitted as %+v", key)
				}
				if !first {
					break
				}
			}
			if known := must(w.login.Known.Lookup(socket))(t); known != w.host.Key() {
				t.Errorf("the pinned key is %v", known)
			}
		})
	}
}

// TestAnswerIsForOneConnection: an answer that is replayed or relayed is refused everywhere except
// where it was made.
func TestAnswerIsForOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	c := w.challenge(t)
	good := w.answer(t, c).Data

	t.Run("another connection", func(t *testing.T) {
		t.Parallel()
		_, err := w.challenge(t).Verify(good)
		refused(t, err, fault.AuthSignature)
	})
	t.Run("a closed connection", func(t *testing.T) {
		t.Parallel()
		gone := w.challenge(t)
		answer := w.answer(t, gone).Data
		gone.Cancel()
		_, err := gone.Verify(answer)
		refused(t, err, fault.AuthSpent)
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		once := w.challenge(t)
		answer := w.answer(t, once).Data
		must(once.Verify(answer))(t)
		_, err := once.Verify(answer)
		refused(t, err, fault.AuthSpent)
	})
	t.Run("after a wrong one", func(t *testing.T) {
		t.Parallel()
		once := w.challenge(t)
		_, err := once.Verify([]byte("{}"))
		refused(t, err, fault.AuthMalformed)
		_, err = once.Verify(w.answer(t, once).Data)
		refused(t, err, fault.AuthSpent)
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		for _, shift := range []time.Duration{access.Window + time.Millisecond, -access.Window - time.Millisecond} {
			now := noon
			slow := newWorld(t, "ed25519")
			slow.verifier.Now = func() time.Time { return now }
			late := slow.challenge(t)
			answer := slow.answer(t, late).Data
			now = noon.Add(shift)
			_, err := late.Verify(answer)
			refused(t, err, fault.AuthLate)
		}
	})
}

// TestSignatureBindsEverything: a signature of a text that differs in any one line is refused,
// whichever end differs.
func TestSignatureBindsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	signer := identity(t, keyFile(t, "ed25519"))
	for _, c := range []struct {
		name   string
		change func(*access.Binding)
		role   access.Role
	}{
		{"challenge", func(b *access.Binding) { b.Challenge[31] ^= 1 }, access.Client},
		{"host key", func(b *access.Binding) { b.HostKey = vectorKey(t, "ecdsa256") }, access.Client},
		{"socket", func(b *access.Binding) {
			b.Channel = access.Local{Socket: "/run/user/1000/pwos/events.sock", PID: pid, UID: uid}
		}, access.Client},
		{"pid", func(b *access.Binding) { b.Channel = access.Local{Socket: socket, PID: pid + 1, UID: uid} }, access.Client},
		{"uid", func(b *access.Binding) { b.Channel = access.Local{Socket: socket, PID: pid} }, access.Client},
		{"time", func(b *access.Binding) { b.Issued = b.Issued.Add(time.Millisecond) }, access.Client},
		{"role", func(*access.Binding) {}, access.Host},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			challenge := w.challenge(t)
			b := bindingOf(t, challenge)
			must(challenge.Verify(answerWith(t, signer, access.Namespace, must(b.Text(access.Client))(t))))(t)

			challenge = w.challenge(t)
			b = bindingOf(t, challenge)
			c.change(b)
			_, err := challenge.Verify(answerWith(t, signer, access.Namespace, must(b.Text(c.role))(t)))
			e := refused(t, err, fault.AuthSignature)
			if e.Detail("key") != signer.Key().Fingerprint() {
				t.Errorf("the error names the key %q", e.Detail("key"))
			}
			if code := fault.Of(err).Code(); code != 401 {
				t.Errorf("the error's code on the wire is %d", code)
			}
		})
	}
}

// TestOtherSignatures: a signature for another purpose, or in another form, is refused.
func TestOtherSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	w.keys += vector(t, "ecdsa256.pub") + vector(t, "rsa3072.pub")
	file := identity(t, keyFile(t, "ed25519"))
	text := func(c *access.Challenge) []byte { return must(bindingOf(t, c).Text(access.Client))(t) }
	named := func(key access.PublicKey, armor string) []byte { return answerText(t, key.String(), armor) }
	for _, c := range []struct {
		name   string
		answer func(*access.Challenge) []byte
		reason fault.ID
	}{
		{"the host's namespace", func(c *access.Challenge) []byte { return answerWith(t, file, access.HostNamespace, text(c)) }, fault.AuthNamespace},
		{"a file's namespace", func(c *access.Challenge) []byte { return answerWith(t, file, "file", text(c)) }, fault.AuthNamespace},
		{"a later version's", func(c *access.Challenge) []byte { return answerWith(t, file, "pwos-auth@v2", text(c)) }, fault.AuthNamespace},
		{"a git commit's", func(*access.Challenge) []byte { return named(file.Key(), vector(t, "git-commit.sig")) }, fault.AuthNamespace},
		{"another text", func(*access.Challenge) []byte { return named(file.Key(), vector(t, "ed25519.sig")) }, fault.AuthSignature},
		{"a stranger's", func(c *access.Challenge) []byte {
			return answerWith(t, newSigner(t, "ed25519"), access.Namespace, text(c))
		}, fault.AuthNoSuchKey},
		{"by another key than named", func(c *access.Challenge) []byte {
			return named(vectorKey(t, "ecdsa256"), armorOf(t, file, access.Namespace, text(c)))
		}, fault.AuthWrongKey},
		{"a stranger's, under an authorized name", func(c *access.Challenge) []byte {
			return named(file.Key(), armorOf(t, newSigner(t, "ed25519"), access.Namespace, text(c)))
		}, fault.AuthWrongKey},
		{"the raw text, without SSHSIG", func(c *access.Challenge) []byte {
			b := blobOf(file.Key())
			b.raw = rawOf(t, keyFile(t, "ed25519"), text(c), "")
			return named(file.Key(), b.armor())
		}, fault.AuthSignature},
		{"the raw challenge", func(c *access.Challenge) []byte {
			b, binding := blobOf(file.Key()), bindingOf(t, c)
			b.raw = rawOf(t, keyFile(t, "ed25519"), binding.Challenge[:], "")
			return named(file.Key(), b.armor())
		}, fault.AuthSignature},
		{"sha1 over rsa", func(c *access.Challenge) []byte {
			b := blobOf(vectorKey(t, "rsa3072"))
			b.raw = rawOf(t, keyFile(t, "rsa3072"), b.signed(text(c)), "ssh-rsa")
			return named(vectorKey(t, "rsa3072"), b.armor())
		}, fault.AuthHash},
		{"another hash named", func(c *access.Challenge) []byte {
			b := blobOf(file.Key())
			b.raw = rawOf(t, keyFile(t, "ed25519"), b.signed(text(c)), "")
			b.hash = "sha256"
			return named(file.Key(), b.armor())
		}, fault.AuthSignature},
		{"md5", func(*access.Challenge) []byte {
			b := blobOf(file.Key())
			b.hash = "md5"
			return named(file.Key(), b.armor())
		}, fault.AuthHash},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			challenge := w.challenge(t)
			_, err := challenge.Verify(c.answer(challenge))
			if refused(t, err, c.reason).Detail("key") == "" {
				t.Error("the error names no key")
			}
		})
	}
}

// TestAnswersThatAreNone: a malformed answer is refused, and the error shows a correct one.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	key, armor := strings.TrimSpace(vector(t, "ed25519.pub")), vector(t, "ed25519.sig")
	for name, answer := range map[string]string{
		"empty":            ``,
		"no JSON":          `{`,
		"null":             `null`,
		"no members":       `{}`,
		"no signature":     fmt.Sprintf(`{"public_key":%q}`, key),
		"one more member":  fmt.Sprintf(`{"public_key":%q,"signature":%q,"time":1}`, key, armor),
		"a member twice":   fmt.Sprintf(`{"public_key":%q,"signature":%q,"signature":%q}`, key, armor, armor),
		"another case":     fmt.Sprintf(`{"Public_Key":%q,"signature":%q}`, key, armor),
		"no key":           fmt.Sprintf(`{"public_key":"","signature":%q}`, armor),
		"two keys":         fmt.Sprintf(`{"public_key":%q,"signature":%q}`, key+"\n"+key, armor),
		"an option":        fmt.Sprintf(`{"public_key":%q,"signature":%q}`, `no-touch-required `+key, armor),
		"another type":     fmt.Sprintf(`{"public_key":%q,"signature":%q}`, "ssh-rsa"+strings.TrimPrefix(key, "ssh-ed25519"), armor),
		"no armor":         fmt.Sprintf(`{"public_key":%q,"signature":"AAAA"}`, key),
		"a huge signature": fmt.Sprintf(`{"public_key":%q,"signature":%q}`, key, strings.Repeat("A", 1<<20)),
		"deep":             strings.Repeat("[", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := w.challenge(t).Verify([]byte(answer))
			refused(t, err, fault.AuthMalformed)
		})
	}
}

// TestNobodyGetsInWithoutKeys: if the file cannot be read, nobody is admitted, and the error does not contain its path.
func TestNobodyGetsInWithoutKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	w.verifier.Keys = func() (*access.AuthorizedKeys, error) { return nil, errors.New("open /secret/place") }
	c := w.challenge(t)
	_, err := c.Verify(w.answer(t, c).Data)
	if e := refused(t, err, fault.AuthNoKeys); strings.Contains(e.Message, "/secret") {
		t.Errorf("%q names a path", e.Message)
	}
}

// TestChallengesDiffer: no two have the same random bytes, and each has the form that PROTOCOL 4 gives it.
func TestChallengesDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	seen := map[[access.ChallengeSize]byte]bool{}
	for range 100 {
		b := bindingOf(t, w.challenge(t))
		if seen[b.Challenge] {
			t.Fatal("two challenges are equal")
		}
		seen[b.Challenge] = true
	}
	if _, err := w.verifier.Challenge(context.Background(), access.Local{Socket: socket, UID: uid}); err == nil {
		t.Error("a client without a PID gets a challenge")
	}
}

// TestProofIsNoJournalSignature: the host key signs the journal raw, and such a signature is no
// proof.
func TestProofIsNoJournalSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	raw := newKey(t, "ed25519")
	w.host = must(access.NewSigner(raw, "host"))(t)
	w.verifier.Host = w.host
	c := w.challenge(t)
	text := must(bindingOf(t, c).Text(access.Host))(t)
	sig := must(raw.Sign(nil, text))(t)
	if !ed25519.Verify(raw.PublicKey().Marshal()[19:], text, sig.Blob) {
		t.Fatal("the raw signature is empty")
	}
	b := blobOf(w.host.Key())
	b.namespace, b.raw = access.HostNamespace, wire(sig)
	o := offerOf(t, c)
	o["host_signature"] = base64.StdEncoding.EncodeToString(b.bytes())
	_, err := w.login.Answer(t.Context(), jsonOf(t, o), c.Issued())
	refused(t, err, fault.AuthHost)
}

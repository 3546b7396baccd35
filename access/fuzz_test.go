package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// FuzzSignature: a signature that parses is formatted as it was parsed.
func FuzzSignature(f *testing.F) {
	for _, name := range []string{"ed25519", "ed25519-sha256", "ecdsa256", "ecdsa384", "ecdsa521", "rsa2048", "rsa3072", "git-commit", "namespace-file"} {
		f.Add(vector(f, name+".sig"))
	}
	f.Add(newSecurityKey("ssh:", 1).armor([]byte("text")))
	f.Fuzz(func(t *testing.T, text string) {
		sig, err := access.ParseArmored(text)
		if err != nil {
			refusal(t, err)
			return
		}
		again, err := access.ParseArmored(sig.Armor())
		if err != nil || again.Armor() != sig.Armor() || again.Key != sig.Key {
			t.Fatalf("parsed again it is %v, %v", again, err)
		}
		if sig.Verify(access.Namespace, []byte("what nobody signed"), true) == nil {
			t.Fatal("the signature verifies for another text")
		}
	})
}

// FuzzSignatureBlob is FuzzSignature behind the armor, where the fuzzer gets deeper.
func FuzzSignatureBlob(f *testing.F) {
	for _, name := range []string{"ed25519", "ecdsa256", "rsa3072"} {
		f.Add(blobOf(vectorKey(f, name)).bytes())
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		sig, err := access.ParseArmored(armored(blob))
		if err != nil {
			refusal(t, err)
			return
		}
		if sig.Armor() != armored(blob) {
			t.Fatal("the signature has two forms")
		}
	})
}

// FuzzAuthorizedKeys: whatever the file holds, a line admits its key or is refused, never both, and
// its options, formatted, grant the same.
func FuzzAuthorizedKeys(f *testing.F) {
	key := strings.TrimSpace(vector(f, "ed25519.pub"))
	for _, options := range []string{
		"", "no-touch-required ", `allow="Memory.*,Syscall.SendMsg",quota="tokens=1000",origin="https://a/",agent="x \"y\"" `,
		`expiry-time="20300101Z" `, `command="ls" `, `allow="x `, "# ", "\x00", `a="\`,
	} {
		f.Add(options + key + "\r\n" + vector(f, "ecdsa256.pub"))
	}
	f.Add(key + "\n" + `allow="*" ` + key)
	f.Fuzz(func(t *testing.T, text string) {
		keys := access.ParseAuthorizedKeys([]byte(text), time.UTC)
		lines := map[int]bool{}
		for _, r := range keys.Refused() {
			if r.Line < 1 || r.Line > strings.Count(text, "\n")+1 || r.Reason == "" {
				t.Fatalf("refused %+v", r)
			}
			lines[r.Line] = true
		}
		for _, k := range keys.Keys() {
			if lines[k.Line] {
				t.Fatalf("line %d is admitted and refused", k.Line)
			}
			written := strings.TrimLeft(k.Options()+" "+k.Key.String(), " ")
			again := access.ParseAuthorizedKeys([]byte(written), time.UTC)
			if len(again.Keys()) != 1 || again.Keys()[0].Options() != k.Options() || (again.Keys()[0].Agent == nil) != (k.Agent == nil) {
				t.Fatalf("%q grants %q, refuses %v", written, k.Options(), again.Refused())
			}
			if k.Agent == nil && strings.ContainsAny(k.Options(), ",") && !k.NoTouch {
				t.Fatalf("an operator with the options %q", k.Options())
			}
		}
	})
}

// FuzzSealed: a sealed value that parses, without data in the clear, is formatted as an equal
// value.
func FuzzSealed(f *testing.F) {
	for _, line := range strings.Split(strings.TrimSpace(vector(f, "sealed")), "\n") {
		f.Add(strings.Fields(line)[1])
	}
	s := enrolled(f, "ed25519")
	f.Fuzz(func(t *testing.T, text string) {
		sealed, err := access.ParseSealed(text)
		if err != nil {
			refusal(t, err)
			return
		}
		again, err := access.ParseSealed(sealed.String())
		if err != nil || again.String() != sealed.String() || again.Fingerprint() != sealed.Fingerprint() {
			t.Fatalf("%s is written as %s: %v", text, sealed, err)
		}
		if _, _, err := s.Open(t.Context(), text); err != nil {
			refusal(t, err)
		}
	})
}

// FuzzOffer: the client signs only for a daemon that proves itself, whatever the offer.
func FuzzOffer(f *testing.F) {
	w := newWorld(f, "ed25519")
	w.host = identity(f, keyFile(f, "ca")) // the same in all processes of the fuzzer
	w.verifier.Host = w.host
	c := w.challenge(f)
	f.Add(c.Data())
	f.Add([]byte(`{"scheme":"none"}`))
	f.Fuzz(func(t *testing.T, offer []byte) {
		answer, err := w.login.Answer(t.Context(), offer, c.Issued())
		if err != nil {
			refusal(t, err)
			return
		}
		if string(answer.Data) != "{}" && answer.Host != w.host.Key() {
			t.Fatalf("the client signed for %v", answer.Host)
		}
	})
}

// refusal fails unless err is one that may be shown.
func refusal(t *testing.T, err error) {
	t.Helper()
	if shown := fault.Of(err); shown.Kind == fault.Internal || shown.Message == "" {
		t.Fatalf("%v cannot be shown", err)
	}
}

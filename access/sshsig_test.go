package access_test

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// vectorBinding is what testdata/make.sh printed as vectors/text.
func vectorBinding(t testing.TB) *access.Binding {
	t.Helper()
	b := &access.Binding{
		HostKey: vectorKey(t, "ed25519"), Channel: access.Local{Socket: socket, PID: pid, UID: uid}, Issued: time.UnixMilli(1735000000000),
	}
	for i := range b.Challenge {
		b.Challenge[i] = byte(i)
	}
	return b
}

// TestVectors: OpenSSH's signature of a text that a shell printed verifies for the text that the
// package builds.
func TestVectors(t *testing.T) {
	t.Parallel()
	text := must(vectorBinding(t).Text(access.Client))(t)
	if string(text) != vector(t, "text") {
		t.Fatalf("the text is\n%s\nand was signed as\n%s", text, vector(t, "text"))
	}
	for _, name := range []string{"ed25519", "ed25519-sha256", "ecdsa256", "ecdsa384", "rsa3072"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sig := must(access.ParseArmored(vector(t, name+".sig")))(t)
			if key, _, _ := strings.Cut(name, "-"); sig.Key != vectorKey(t, key) {
				t.Errorf("the signature is by %v", sig.Key)
			}
			if err := sig.Verify(access.Namespace, text, false); err != nil {
				t.Error(err)
			}
			refused(t, sig.Verify(access.Namespace, slices.Concat(text, []byte("\n")), false), fault.AuthSignature)
			if sig.Armor() != vector(t, name+".sig") {
				t.Error("the signature is not formatted as OpenSSH wrote it")
			}
		})
	}
}

// TestRefusedKeys: keys of weak types or sizes, and certificates, are refused.
func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dsa", "ecdsa521", "rsa2048", "ed25519-cert"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := access.ParsePublicKey(vector(t, name+".pub"))
			if e := refused(t, err, fault.AuthKeyType); !strings.Contains(e.Message, access.AcceptedTypes) {
				t.Errorf("%q does not name the accepted keys", e.Message)
			}
			keys := access.ParseAuthorizedKeys([]byte(vector(t, name+".pub")), time.UTC)
			if len(keys.Keys()) != 0 || len(keys.Refused()) != 1 {
				t.Errorf("authorized_keys admits it: %v", keys.Refused())
			}
		})
	}
	for _, name := range []string{"ecdsa521", "rsa2048"} {
		_, err := access.ParseArmored(vector(t, name+".sig"))
		refused(t, err, fault.AuthKeyType)
	}
	_, err := access.NewSigner(newKey(t, "p521"), "test")
	refused(t, err, fault.AuthKeyType)
}

// TestKeysHaveOneForm: a key that is not encoded as OpenSSH does is refused, since a comparison of
// bytes would see two keys.
func TestKeysHaveOneForm(t *testing.T) {
	t.Parallel()
	blob := []byte(wireKey(vectorKey(t, "rsa3072")))
	const exponent = 4 + len("ssh-rsa") // offset of its length
	padded := slices.Concat(blob[:exponent], []byte{0, 0, 0, 4, 0}, blob[exponent+4:])
	_, _, err := access.ParsePublicKey("ssh-rsa " + base64.StdEncoding.EncodeToString(padded))
	refused(t, err, fault.AuthMalformed)
}

// TestMalformedSignatures: a signature with a byte added, removed or changed is refused.
func TestMalformedSignatures(t *testing.T) {
	t.Parallel()
	good := vector(t, "ed25519.sig")
	body := strings.Join(strings.Split(good, "\n")[1:5], "")
	blob := must(base64.StdEncoding.DecodeString(body))(t)
	forged := func(change func(*forgery)) string {
		f := blobOf(vectorKey(t, "ed25519"))
		change(f)
		return f.armor()
	}
	must(access.ParseArmored(armored(blob)))(t)
	must(access.ParseArmored(forged(func(*forgery) {})))(t)
	must(access.ParseArmored(strings.TrimSuffix(good, "\n")))(t)

	key := vectorKey(t, "ed25519")
	rsa := vectorKey(t, "rsa3072")
	for name, text := range map[string]string{
		"empty":                   "",
		"something before":        " " + good,
		"something behind":        good + "\n",
		"two of them":             good + good,
		"carriage returns":        strings.ReplaceAll(good, "\n", "\r\n"),
		"returns within":          strings.ReplaceAll(good, body[60:70]+"\n", body[60:70]+"\r\n"),
		"returns in each line":    "-----BEGIN SSH SIGNATURE-----\n" + strings.ReplaceAll(strings.TrimPrefix(good, "-----BEGIN SSH SIGNATURE-----\n"), "\n-----END", "\r\n-----END"),
		"another label":           strings.ReplaceAll(good, "SSH SIGNATURE", "SSH  SIGNATURE"),
		"a header":                strings.Replace(good, "-----\n", "-----\nComment: x\n\n", 1),
		"no begin":                strings.TrimPrefix(good, "-----BEGIN SSH SIGNATURE-----\n"),
		"no end":                  strings.TrimSuffix(good, "-----END SSH SIGNATURE-----\n"),
		"an empty line":           strings.Replace(good, "-----\n", "-----\n\n", 1),
		"lines of several widths": strings.Replace(good, body[:9], body[:9]+"\n", 1),
		"a blank in the base64":   strings.Replace(good, body[:9], body[:8]+" "+body[8:9], 1),
		"loose bits":              strings.Replace(good, body[len(body)-2:], string(body[len(body)-2]+1)+"=", 1),
		"oversized":               strings.Repeat("A", access.MaxArmor+1),
		"oversized in its form":   forged(func(f *forgery) { f.namespace = strings.Repeat("x", access.MaxArmor) }),
		"another magic":           forged(func(f *forgery) { f.magic = "SSHSIX" }),
		"version 0":               forged(func(f *forgery) { f.version = 0 }),
		"version 2":               forged(func(f *forgery) { f.version = 2 }),
		"reserved bytes":          forged(func(f *forgery) { f.reserved = "x" }),
		"trailing bytes":          forged(func(f *forgery) { f.trailing = "x" }),
		"no key":                  forged(func(f *forgery) { f.key = "" }),
		"a key with more":         forged(func(f *forgery) { f.key += "x" }),
		"a key cut short":         forged(func(f *forgery) { f.key = f.key[:len(f.key)-1] }),
		"no signature":            forged(func(f *forgery) { f.raw = "" }),
		"an empty signature":      forged(func(f *forgery) { f.raw = wire(&ssh.Signature{Format: key.Type()}) }),
		"a signature with more":   forged(func(f *forgery) { f.raw += "x" }),
		"flags of a security key": forged(func(f *forgery) { f.raw += "\x01\x00\x00\x00\x07" }),
		"a length that overflows": forged(func(f *forgery) { f.raw = "\xff\xff\xff\xff" + f.raw[4:] }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := access.ParseArmored(text)
			refused(t, err, fault.AuthMalformed)
		})
	}
	for name, c := range map[string]struct {
		text   string
		reason fault.ID
	}{
		"no namespace":     {forged(func(f *forgery) { f.namespace = "" }), fault.AuthNamespace},
		"no hash":          {forged(func(f *forgery) { f.hash = "" }), fault.AuthHash},
		"sha1":             {forged(func(f *forgery) { f.hash = "sha1" }), fault.AuthHash},
		"sha384":           {forged(func(f *forgery) { f.hash = "sha384" }), fault.AuthHash},
		"SHA512":           {forged(func(f *forgery) { f.hash = "SHA512" }), fault.AuthHash},
		"another's format": {forged(func(f *forgery) { f.raw = wire(&ssh.Signature{Format: "ecdsa-sha2-nistp256", Blob: []byte{1}}) }), fault.AuthHash},
		"ssh-rsa": {forged(func(f *forgery) {
			f.key, f.raw = wireKey(rsa), wire(&ssh.Signature{Format: "ssh-rsa", Blob: make([]byte, 384)})
		}), fault.AuthHash},
		"a type of its own": {forged(func(f *forgery) { f.key = string(ssh.Marshal(struct{ T, K string }{"ssh-none", "x"})) }), fault.AuthKeyType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := access.ParseArmored(c.text)
			refused(t, err, c.reason)
		})
	}
	t.Run("cut anywhere", func(t *testing.T) {
		t.Parallel()
		for n := range blob {
			if _, err := access.ParseArmored(armored(blob[:n])); err == nil {
				t.Fatalf("its first %d bytes are a signature", n)
			}
		}
	})
}

// TestOneSignatureHasOneForm: a good signature with any bit flipped does not verify, and that of
// RSA may not be shortened.
func TestOneSignatureHasOneForm(t *testing.T) {
	t.Parallel()
	text := must(vectorBinding(t).Text(access.Client))(t)
	verify := func(text2 string) error {
		sig, err := access.ParseArmored(text2)
		if err != nil {
			return err
		}
		return sig.Verify(access.Namespace, text, false)
	}
	for _, name := range []string{"ed25519", "ecdsa256", "rsa3072"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := strings.Split(strings.TrimSpace(vector(t, name+".sig")), "\n")
			blob := must(base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-1], "")))(t)
			key := vectorKey(t, name)
			if err := verify(armored(blob)); err != nil {
				t.Fatal(err)
			}
			for i := range blob {
				for bit := range 8 {
					blob[i] ^= 1 << bit
					sig, err := access.ParseArmored(armored(blob))
					// A signature by another key would be another login, so only the same key
					// counts.
					if err == nil && sig.Key == key && sig.Verify(access.Namespace, text, false) == nil {
						t.Fatalf("the signature verifies with bit %d of byte %d flipped", bit, i)
					}
					blob[i] ^= 1 << bit
				}
			}
		})
	}
	t.Run("rsa3072, shortened", func(t *testing.T) {
		t.Parallel()
		key := must(ssh.ParsePrivateKey([]byte(vector(t, "rsa3072"))))(t).(ssh.AlgorithmSigner)
		f := blobOf(vectorKey(t, "rsa3072"))
		for n := range 10_000 { // one in 256 begins with a zero
			message := []byte(strconv.Itoa(n))
			sig := must(key.SignWithAlgorithm(rand.Reader, f.signed(message), "rsa-sha2-512"))(t)
			if sig.Blob[0] != 0 {
				continue
			}
			f.raw = wire(sig)
			if err := must(access.ParseArmored(f.armor()))(t).Verify(access.Namespace, message, false); err != nil {
				t.Fatal(err)
			}
			sig.Blob = sig.Blob[1:]
			f.raw = wire(sig)
			refused(t, must(access.ParseArmored(f.armor()))(t).Verify(access.Namespace, message, false), fault.AuthSignature)
			return
		}
		t.Fatal("no signature begins with a zero")
	})
}

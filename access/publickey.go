package access

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// MinRSABits is the size of the smallest RSA key that is accepted.
const MinRSABits = 3072

// maxKeyBlob bounds a public key in bytes: an RSA key of 16,384 bits needs 2,071.
const maxKeyBlob = 4096

// AcceptedTypes describes the accepted keys, for the errors of others.
const AcceptedTypes = "ed25519, sk-ssh-ed25519, ecdsa on nistp256 or nistp384, or rsa of 3072 bits and more"

// PublicKey is a key of an accepted type and size. It is comparable: two are equal if they are the
// same key. The zero value is no key.
type PublicKey struct {
	typ  string
	blob string // in SSH wire form, which is unique
}

// parseKeyBlob parses a key in SSH wire form, and refuses one that is not accepted.
func parseKeyBlob(blob []byte) (PublicKey, *fault.Fault) {
	var in struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(blob, &in) != nil || len(blob) > maxKeyBlob {
		return PublicKey{}, fault.AuthMalformed.New("this is not a public key: send one as a .pub file holds it")
	}
	if err := checkType(in.Type); err != nil {
		return PublicKey{}, err
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return PublicKey{}, fault.AuthMalformed.New("the %s key cannot be read: send it as its .pub file holds it", in.Type).Wrap(err)
	}
	if string(key.Marshal()) != string(blob) {
		return PublicKey{}, fault.AuthMalformed.New("the %s key is not written as OpenSSH writes it: send it as its .pub file holds it", in.Type)
	}
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if n, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && n.N.BitLen() < MinRSABits {
			return PublicKey{}, fault.AuthKeyType.New("an RSA key of %d bits is too short: use %s", n.N.BitLen(), AcceptedTypes)
		}
	}
	return PublicKey{typ: in.Type, blob: string(blob)}, nil
}

// checkType refuses the types that are not accepted, certificates and DSA among them.
func checkType(typ string) *fault.Fault {
	accepted := []string{ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoRSA}
	switch {
	case slices.Contains(accepted, typ):
		return nil
	case strings.Contains(typ, "-cert-v0"):
		return fault.AuthKeyType.New("certificates are not accepted: use the plain key, of type %s", AcceptedTypes)
	}
	return fault.AuthKeyType.New("keys of type %s are not accepted: use %s", printable(typ, 64), AcceptedTypes)
}

// ParsePublicKey parses a key in the form of a .pub file: type, base64, and an optional comment.
func ParsePublicKey(line string) (key PublicKey, comment string, err error) {
	key, comment, failure := parseKeyLine(line)
	if failure != nil {
		return PublicKey{}, "", failure
	}
	return key, comment, nil
}

func parseKeyLine(line string) (PublicKey, string, *fault.Fault) {
	const blanks = " \t"
	typ, rest, _ := cutAny(strings.Trim(line, blanks+"\r\n"), blanks)
	text, comment, _ := cutAny(strings.TrimLeft(rest, blanks), blanks)
	if typ == "" || text == "" || strings.ContainsAny(line[:len(strings.TrimRight(line, "\r\n"))], "\x00\r\n") {
		return PublicKey{}, "", fault.AuthMalformed.New("this is not a public key: write it as its .pub file does, in one line")
	}
	if len(text) > base64.StdEncoding.EncodedLen(maxKeyBlob) {
		return PublicKey{}, "", fault.AuthMalformed.New("the public key is too long")
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return PublicKey{}, "", fault.AuthMalformed.New("the public key is not in base64: write it as its .pub file does")
	}
	key, failure := parseKeyBlob(blob)
	if failure == nil && key.typ != typ {
		failure = fault.AuthMalformed.New("the key is of type %s, not %s as the line says", key.typ, printable(typ, 64))
	}
	if failure != nil {
		return PublicKey{}, "", failure
	}
	return key, printable(strings.Trim(comment, blanks), 256), nil
}

// Type returns the key's type as SSH names it, such as ssh-ed25519.
func (k PublicKey) Type() string { return k.typ }

// IsZero reports whether k is no key.
func (k PublicKey) IsZero() bool { return k.blob == "" }

// Fingerprint returns the key's fingerprint as ssh-keygen -l shows it, "SHA256:…", empty for no key.
func (k PublicKey) Fingerprint() string {
	if k.IsZero() {
		return ""
	}
	sum := sha256.Sum256([]byte(k.blob))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// String returns the key as a line of authorized_keys, without a comment.
func (k PublicKey) String() string {
	return k.typ + " " + base64.StdEncoding.EncodeToString([]byte(k.blob))
}

// parsed returns the key as the library's type. parseKeyBlob has accepted it, so parsing cannot
// fail.
func (k PublicKey) parsed() ssh.PublicKey {
	key, err := ssh.ParsePublicKey([]byte(k.blob))
	if err != nil {
		panic("access: public key made without its parser: " + err.Error())
	}
	return key
}

// cutAny cuts s around the first of the given bytes.
func cutAny(s, any string) (before, after string, found bool) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// printable makes foreign text fit for a message: at most n bytes, and no control characters.
func printable(s string, n int) string {
	s = clip.Text(strings.ToValidUTF8(s, "?"), n)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// The data of the frames of a prologue (PROTOCOL 4).
type (
	offerData struct {
		Scheme        string `json:"scheme" enum:"none signature"`
		Challenge     string `json:"challenge,omitzero" maxlen:"64"`
		HostKey       string `json:"host_key,omitzero" maxlen:"6144"`
		HostSignature string `json:"host_signature,omitzero" maxlen:"8192"`
	}
	answerData struct {
		PublicKey string `json:"public_key" maxlen:"6400"`
		Signature string `json:"signature" maxlen:"8192"`
	}
)

const (
	schemeNone      = "none"
	schemeSignature = "signature"

	// maxFrameData bounds the data of either frame in bytes, whatever the line limit.
	maxFrameData = 24 << 10
)

// decodeData decodes a frame's data strictly: no duplicate member, none unknown.
func decodeData[T any](data []byte) (*T, *fault.Fault) {
	if len(data) > maxFrameData || !schema.Valid(data) {
		return nil, fault.WireInvalidJSON.New("it is too long or no JSON")
	}
	v, failure := schema.TypeOf[T]().Decode(data)
	if failure != nil {
		return nil, failure
	}
	return v.(*T), nil
}

// parseOffer parses a daemon's offer. The challenge and the host key must be in canonical form, so
// that the bound bytes are those that were sent.
func parseOffer(data []byte) (o *offerData, b *Binding, proof *Signature, err error) {
	o, failure := decodeData[offerData](data)
	if failure != nil {
		return nil, nil, nil, fault.AuthMalformed.New("the daemon's offer cannot be read: is it a pwos daemon of the same version?").Wrap(failure)
	}
	if o.Scheme == schemeNone {
		if *o != (offerData{Scheme: schemeNone}) {
			return nil, nil, nil, fault.AuthMalformed.New("the daemon sent a challenge with scheme none: it is no pwos daemon")
		}
		return o, nil, nil, nil
	}
	b = &Binding{}
	raw, decodeErr := base64.StdEncoding.Strict().DecodeString(o.Challenge)
	if decodeErr != nil || len(raw) != ChallengeSize || base64.StdEncoding.EncodeToString(raw) != o.Challenge {
		return nil, nil, nil, fault.AuthMalformed.New("the daemon's challenge is not %d bytes in base64: nothing was signed", ChallengeSize)
	}
	b.Challenge = [ChallengeSize]byte(raw)
	key, _, keyFault := parseKeyLine(o.HostKey)
	if keyFault != nil || key.String() != o.HostKey {
		return nil, nil, nil, fault.AuthHost.New("the daemon's host key cannot be read: nothing was signed").Wrap(asError(keyFault))
	}
	b.HostKey = key
	blob, decodeErr := base64.StdEncoding.Strict().DecodeString(o.HostSignature)
	if decodeErr != nil {
		return nil, nil, nil, fault.AuthHost.New("the daemon did not prove that it holds its host key: nothing was signed").With("key", key.Fingerprint())
	}
	proof, sigFault := parseSignature(blob)
	if sigFault != nil {
		return nil, nil, nil, fault.AuthHost.New("the daemon's proof of its host key cannot be read: nothing was signed").With("key", key.Fingerprint()).Wrap(sigFault)
	}
	return o, b, proof, nil
}

// parseAnswer parses a client's answer: the key that it names, and a signature that claims to be by
// that key.
func parseAnswer(data []byte) (*Signature, *fault.Fault) {
	a, failure := decodeData[answerData](data)
	if failure != nil {
		return nil, fault.AuthMalformed.New("the answer's data has to be {\"public_key\":\"ssh-ed25519 …\",\"signature\":\"-----BEGIN SSH SIGNATURE-----…\"}").Wrap(failure)
	}
	key, _, err := parseKeyLine(a.PublicKey)
	if err != nil {
		return nil, err
	}
	sig, err := decodeArmor(a.Signature)
	if err != nil {
		if err.Detail("key") == "" {
			err.With("key", key.Fingerprint())
		}
		return nil, err
	}
	if sig.Key != key {
		return nil, fault.AuthWrongKey.New("the signature is by the key %s, not by the one that was named: name the key that signs",
			sig.Key.Fingerprint()).With("key", key.Fingerprint())
	}
	return sig, nil
}

// marshalData encodes a frame's data.
func marshalData(v any) []byte {
	data, err := schema.Marshal(v)
	if err != nil {
		panic("access: cannot encode a struct of strings: " + err.Error())
	}
	return data
}

// asError returns err as an error that is nil if err is.
func asError(err *fault.Fault) error {
	if err == nil {
		return nil
	}
	return err
}

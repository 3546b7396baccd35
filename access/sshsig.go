package access

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	magic   = "SSHSIG"
	version = 1

	armorBegin = "-----BEGIN SSH SIGNATURE-----\n"
	armorEnd   = "-----END SSH SIGNATURE-----"
	armorWidth = 70 // of ssh-keygen

	// MaxArmor bounds an armored signature in bytes. The key and the signature of an RSA key of 16,384 bits need 5,700.
	MaxArmor = 8192
)

// Signature is a detached signature in OpenSSH's SSHSIG form, version 1; it is not verified yet.
//
// The form is parsed more strictly than OpenSSH does: nothing before, behind or between the
// required parts, no reserved bytes, one encoding of each value. So a signature has one form, and
// the verifier sees all of it.
type Signature struct {
	Key       PublicKey // that claims to have signed
	Namespace string
	Hash      string // sha256 or sha512
	raw       *ssh.Signature
}

// malformed is the error of a signature that is not in its form.
func malformed(problem string) *fault.Fault {
	return fault.AuthMalformed.New("the signature %s: send what \"ssh-keygen -Y sign -n %s\" writes", problem, Namespace)
}

// ParseArmored parses a signature as ssh-keygen -Y sign writes it; the end of the last line may be
// missing.
func ParseArmored(text string) (*Signature, error) {
	sig, err := decodeArmor(text)
	if err != nil {
		return nil, err
	}
	return sig, nil
}

func decodeArmor(text string) (*Signature, *fault.Fault) {
	if len(text) > MaxArmor {
		return nil, malformed("is too long")
	}
	body, begun := strings.CutPrefix(text, armorBegin)
	body, ended := strings.CutSuffix(strings.TrimSuffix(body, "\n"), "\n"+armorEnd)
	if !begun || !ended {
		return nil, malformed("is not armored")
	}
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		// Only the last line may have another width, so that line ends carry no information.
		if line == "" || len(line) != len(lines[0]) && (i != len(lines)-1 || len(line) > len(lines[0])) || strings.Contains(line, "\r") {
			return nil, malformed("is not armored in lines of one width")
		}
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(strings.Join(lines, ""))
	if err != nil {
		return nil, malformed("is not in base64")
	}
	return parseSignature(blob)
}

// signatureForm is the binary form of a signature after its magic.
type signatureForm struct {
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  string
	Hash      string
	Raw       []byte
	Rest      []byte `ssh:"rest"`
}

// parseSignature parses a signature in its binary form.
func parseSignature(blob []byte) (*Signature, *fault.Fault) {
	rest, ok := bytes.CutPrefix(blob, []byte(magic))
	if !ok || len(rest) < 4 {
		return nil, malformed("does not begin with the SSHSIG magic")
	}
	if binary.BigEndian.Uint32(rest) != version {
		return nil, malformed("is not of version 1")
	}
	var in signatureForm
	if ssh.Unmarshal(rest, &in) != nil {
		return nil, malformed("is cut short")
	}
	if len(in.Rest) > 0 || in.Reserved != "" {
		return nil, malformed("holds more than a signature")
	}
	key, err := parseKeyBlob(in.Key)
	if err != nil {
		return nil, err
	}
	s := &Signature{Key: key, Namespace: in.Namespace, Hash: in.Hash}
	if s.Namespace == "" {
		return nil, fault.AuthNamespace.New("the signature has no namespace: sign with \"ssh-keygen -Y sign -n %s\"", Namespace).With("key", key.Fingerprint())
	}
	if s.Hash != "sha256" && s.Hash != "sha512" {
		return nil, fault.AuthHash.New("the signature's hash is not accepted: sign with sha256 or sha512").With("key", key.Fingerprint())
	}
	if s.raw, err = parseRaw(key, in.Raw); err != nil {
		return nil, err.With("key", key.Fingerprint())
	}
	return s, nil
}

// parseRaw parses the raw signature, as an ssh-agent returns it, and checks its algorithm and size
// against the key.
func parseRaw(key PublicKey, blob []byte) (*ssh.Signature, *fault.Fault) {
	raw := new(ssh.Signature)
	if ssh.Unmarshal(blob, raw) != nil {
		return nil, malformed("is cut short")
	}
	extra := 0 // of a security key: its flags, one byte, and its counter, four
	if key.typ == ssh.KeyAlgoSKED25519 {
		extra = 5
	}
	if len(raw.Rest) != extra || len(raw.Blob) == 0 {
		return nil, malformed("holds more than a signature, or less")
	}
	return raw, checkAlgorithm(key, raw.Format)
}

// checkAlgorithm refuses a signature algorithm that does not match the key, and SHA-1 with RSA.
func checkAlgorithm(key PublicKey, algorithm string) *fault.Fault {
	switch {
	case key.typ != ssh.KeyAlgoRSA && algorithm == key.typ,
		key.typ == ssh.KeyAlgoRSA && (algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512):
		return nil
	case key.typ == ssh.KeyAlgoRSA:
		return fault.AuthHash.New("the RSA signature has to be rsa-sha2-256 or rsa-sha2-512: update the program that signs")
	}
	return fault.AuthHash.New("the signature is of type %s, the key of type %s", printable(algorithm, 64), key.typ)
}

// marshal returns the signature in its binary form.
func (s *Signature) marshal() []byte {
	return append([]byte(magic), ssh.Marshal(&signatureForm{
		Version: version, Key: []byte(s.Key.blob), Namespace: s.Namespace, Hash: s.Hash, Raw: ssh.Marshal(s.raw),
	})...)
}

// Armor returns the signature as ssh-keygen -Y sign writes it.
func (s *Signature) Armor() string {
	text := base64.StdEncoding.EncodeToString(s.marshal())
	var b strings.Builder
	b.WriteString(armorBegin)
	for len(text) > armorWidth {
		b.WriteString(text[:armorWidth])
		b.WriteByte('\n')
		text = text[armorWidth:]
	}
	b.WriteString(text + "\n" + armorEnd + "\n")
	return b.String()
}

// signedData is what the key signs: never the message itself, always a text that no other protocol
// over SSH keys has.
func signedData(namespace, hash string, message []byte) []byte {
	var sum []byte
	switch hash {
	case "sha256":
		h := sha256.Sum256(message)
		sum = h[:]
	default: // parseSignature accepts nothing else
		h := sha512.Sum512(message)
		sum = h[:]
	}
	return append([]byte(magic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{namespace, "", hash, sum})...)
}

// Signer is a key that signs: in an ssh-agent, in a file, or in memory.
type Signer struct {
	key    PublicKey
	source string
	// sign returns the raw signature of data. An empty algorithm means the key's default.
	sign func(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error)
}

// NewSigner returns a Signer over a key of the library; source says where it comes from, for
// messages. The error is a fault: the key's type or size is not accepted.
func NewSigner(key ssh.Signer, source string) (*Signer, error) {
	public, failure := parseKeyBlob(key.PublicKey().Marshal())
	if failure != nil {
		return nil, failure
	}
	return &Signer{key: public, source: source, sign: signWith(key)}, nil
}

// signWith signs with a key in memory.
func signWith(key ssh.Signer) func(context.Context, []byte, string) (*ssh.Signature, error) {
	return func(_ context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
		if named, ok := key.(ssh.AlgorithmSigner); ok && algorithm != "" {
			return named.SignWithAlgorithm(rand.Reader, data, algorithm)
		}
		return key.Sign(rand.Reader, data)
	}
}

// Key is the signer's public key.
func (s *Signer) Key() PublicKey { return s.key }

// Source says where the private key is, such as "ssh-agent" or a file's path.
func (s *Signer) Source() string { return s.source }

// Sign signs message under a namespace. The signature is verified before it is returned, so that an
// agent or a card that signs something else, or with another key, is detected here and not by the
// daemon. The error is a *fault.Fault, or ctx's cause.
func (s *Signer) Sign(ctx context.Context, namespace string, message []byte) (*Signature, error) {
	const hash = "sha512"
	algorithm := s.key.typ
	if algorithm == ssh.KeyAlgoRSA {
		algorithm = ssh.KeyAlgoRSASHA512
	}
	raw, err := s.sign(ctx, signedData(namespace, hash, message), algorithm)
	if err != nil {
		return nil, err
	}
	// The raw form is parsed as a daemon would, so that no signature is sent that a daemon refuses.
	parsed, failure := parseRaw(s.key, ssh.Marshal(raw))
	if failure != nil {
		return nil, s.lied(failure)
	}
	sig := &Signature{Key: s.key, Namespace: namespace, Hash: hash, raw: parsed}
	if err := sig.Verify(namespace, message, true); err != nil {
		return nil, s.lied(err)
	}
	return sig, nil
}

// lied is the error of a signature that its own key does not verify.
func (s *Signer) lied(err error) *fault.Fault {
	return fault.AuthAgentLied.New("%s returned an invalid signature by %s: nothing was sent; name another key with --identity",
		s.source, s.key.Fingerprint()).With("key", s.key.Fingerprint()).Wrap(err)
}

// flagTouched is the bit of a security key's signature that reports a touch.
const flagTouched = 0x01

// Verify checks that s is a signature of message by its key under the namespace. A security key
// must have been touched unless noTouch is true. The error is a fault.
//
// It does not check whose key it is: look up s.Key first, so that only known keys cost a
// verification.
func (s *Signature) Verify(namespace string, message []byte, noTouch bool) error {
	if s.Namespace != namespace {
		return fault.AuthNamespace.New("the signature was made for %s: sign with \"ssh-keygen -Y sign -n %s\"",
			printable(s.Namespace, 64), namespace).With("key", s.Key.Fingerprint())
	}
	if err := s.Key.verify(signedData(namespace, s.Hash, message), s.raw); err != nil {
		return fault.AuthSignature.New("the signature does not match the text for this connection").With("key", s.Key.Fingerprint()).Wrap(err)
	}
	if !noTouch && s.Key.typ == ssh.KeyAlgoSKED25519 && s.raw.Rest[0]&flagTouched == 0 {
		return fault.AuthNoTouch.New("the security key was not touched: touch it when it blinks, or set no-touch-required for it in authorized_keys").With("key", s.Key.Fingerprint())
	}
	return nil
}

// verify checks a raw signature of data. It does not check for a touch, which the library requires.
func (k PublicKey) verify(data []byte, sig *ssh.Signature) error {
	if k.typ == ssh.KeyAlgoSKED25519 {
		return k.verifySecurityKey(data, sig)
	}
	key := k.parsed()
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		// The library pads a short RSA signature, which would give one signature several forms.
		if n, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && len(sig.Blob) != n.Size() {
			return errVerify
		}
	}
	return key.Verify(data, sig)
}

// errVerify is the error of a signature that does not verify.
var errVerify = fault.AuthSignature.New("the signature does not verify")

// verifySecurityKey checks the signature of a FIDO authenticator, which signs its application, its flags and its counter along
// with the data (OpenSSH's PROTOCOL.u2f).
func (k PublicKey) verifySecurityKey(data []byte, sig *ssh.Signature) error {
	var key struct {
		Type        string
		Point       []byte
		Application string
	}
	err := ssh.Unmarshal([]byte(k.blob), &key)
	// A key made for a web site signs what the site's browser sends.
	if err != nil || len(key.Point) != ed25519.PublicKeySize || !strings.HasPrefix(key.Application, "ssh:") || len(sig.Rest) != 5 {
		return errVerify
	}
	app, sum := sha256.Sum256([]byte(key.Application)), sha256.Sum256(data)
	signed := append(app[:], sig.Rest...)
	signed = append(signed, sum[:]...)
	if sig.Format != k.typ || !ed25519.Verify(key.Point, signed, sig.Blob) {
		return errVerify
	}
	return nil
}

package access

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// sealText is what a key signs to derive a sealing key from the signature. It is signed raw,
	// without SSHSIG, and is the same in all implementations of the format: no other text may ever
	// be signed raw.
	sealText = "PromptWareOS::pwenc::v1"
	sealSalt = "PromptwareOS"
	sealInfo = "pwenc:v1"
)

// Sealer seals and opens values with a key that is derived from an SSH key, which may be in an
// ssh-agent. The derived key is computed for each value and cleared after it, as far as Go allows:
// the cipher keeps a schedule of it until it is collected.
//
// It may be used by many goroutines. Nonces are random; one key may seal some four billion values.
type Sealer struct{ signer *Signer }

// Enroll returns a Sealer of the key if it signs the same text the same way each time: otherwise
// sealed values could never be opened. Only ed25519 and rsa keys can do that, and Enroll tries
// them. The error is a fault of CryptoCannot, one of the signer's, or ctx's cause.
func Enroll(ctx context.Context, signer *Signer) (*Sealer, error) {
	if typ := signer.key.typ; typ != ssh.KeyAlgoED25519 && typ != ssh.KeyAlgoRSA {
		return nil, fault.CryptoCannot.New("a key of type %s cannot seal, since it signs the same text differently each time and the seal could not be opened: use an ed25519 or rsa key",
			typ).With("key", signer.key.Fingerprint())
	}
	s := &Sealer{signer}
	first, err := s.signature(ctx, s.algorithms()[0])
	if err != nil {
		return nil, err
	}
	second, err := s.signature(ctx, s.algorithms()[0])
	defer clear(first)
	defer clear(second)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(first, second) {
		return nil, fault.CryptoCannot.New("the key %s signs the same text differently each time, so that what it sealed could not be opened: use another ed25519 or rsa key",
			signer.key.Fingerprint()).With("key", signer.key.Fingerprint())
	}
	return s, nil
}

// Key is the public key from which the sealing key was derived.
func (s *Sealer) Key() PublicKey { return s.signer.key }

// KeyID names the key as sealed values do, "ssh-fp:SHA256:…".
func (s *Sealer) KeyID() string { return keyIDText(s.signer.key.id()) }

func (k PublicKey) id() [sha256.Size]byte { return sha256.Sum256([]byte(k.blob)) }

// Seal seals a plaintext of at most MaxPlaintext bytes. aad, of at most MaxAAD bytes, is
// authenticated but not encrypted; nil is none, which every implementation of the format can open.
// The caller must clear the plaintext.
func (s *Sealer) Seal(ctx context.Context, plaintext, aad []byte) (string, error) {
	if err := sealable(plaintext, aad); err != nil {
		return "", err
	}
	aead, err := s.cipher(ctx, s.algorithms()[0])
	if err != nil {
		return "", err
	}
	return s.signer.key.seal(aead, plaintext, aad), nil
}

// sealable refuses values that are too long.
func sealable(plaintext, aad []byte) error {
	if len(plaintext) > MaxPlaintext || len(aad) > MaxAAD {
		return fault.CryptoCannot.New("at most %d bytes can be sealed, with at most %d in the clear: seal a key for what is longer", MaxPlaintext, MaxAAD)
	}
	return nil
}

// seal seals with the sealing key of k.
func (k PublicKey) seal(aead cipher.AEAD, plaintext, aad []byte) string {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never returns an error
	return k.sealWith(aead, nonce, plaintext, aad)
}

// sealWith seals with a nonce that no other plaintext has.
func (k PublicKey) sealWith(aead cipher.AEAD, nonce, plaintext, aad []byte) string {
	sealed := &Sealed{keyID: k.id(), nonce: nonce, aad: aad, text: aead.Seal(nil, nonce, plaintext, aad)}
	return sealed.String()
}

// Open opens a sealed value and returns its plaintext, which the caller clears after use, and its
// aad. The error is a *fault.Fault that reveals nothing of the content, one of the signer's, or
// ctx's cause.
func (s *Sealer) Open(ctx context.Context, text string) (plaintext, aad []byte, err error) {
	sealed, err := s.signer.key.sealed(text)
	if err != nil {
		return nil, nil, err
	}
	for i, algorithm := range s.algorithms() {
		aead, err := s.cipher(ctx, algorithm)
		if err != nil {
			if i == 0 || ctx.Err() != nil {
				return nil, nil, err
			}
			continue // an agent may refuse SHA-1
		}
		if plaintext, err := aead.Open(nil, sealed.nonce, sealed.text, sealed.aad); err == nil {
			return plaintext, sealed.aad, nil
		}
	}
	return nil, nil, s.signer.key.brokenSeal()
}

// sealed parses a value that must be sealed by k.
func (k PublicKey) sealed(text string) (*Sealed, error) {
	sealed, err := ParseSealed(text)
	if err != nil {
		return nil, err
	}
	if sealed.keyID != k.id() {
		return nil, fault.CryptoOtherKey.New("the value was sealed by the key %s, not by %s: open it with that key",
			sealed.Fingerprint(), k.Fingerprint()).With("key", k.Fingerprint())
	}
	return sealed, nil
}

// brokenSeal is the error of a value that k has sealed but that does not open.
func (k PublicKey) brokenSeal() error {
	return fault.CryptoBroken.New("the sealed value was changed after it was sealed: copy it from its source again").With("key", k.Fingerprint())
}

// algorithms are those by which a value may have been sealed; the first is the one that Seal uses.
// The format does not say which signature algorithm of an RSA key it means: OpenSSH agents default
// to SHA-1, current programs ask for SHA-2. All are equally secret here, since the text is fixed,
// but an agent may refuse SHA-1 one day.
func (s *Sealer) algorithms() []string {
	if s.signer.key.typ == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA256}
	}
	return []string{s.signer.key.typ}
}

// cipher derives the sealing key.
func (s *Sealer) cipher(ctx context.Context, algorithm string) (cipher.AEAD, error) {
	secret, err := s.signature(ctx, algorithm)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	key, err := hkdf.Key(sha256.New, secret, []byte(sealSalt), sealInfo, 32)
	if err != nil {
		return nil, errors.Join(errDerive, err)
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errors.Join(errDerive, err)
	}
	return cipher.NewGCM(block)
}

var errDerive = errors.New("derive sealing key")

// signature returns the raw bytes of the signature of sealText, as an ssh-agent returns them after
// the algorithm's name. It is verified, so that no value is sealed that the key could not open.
func (s *Sealer) signature(ctx context.Context, algorithm string) ([]byte, error) {
	sig, err := s.signer.sign(ctx, []byte(sealText), algorithm)
	if err != nil {
		return nil, err
	}
	if sig.Format != algorithm || len(sig.Rest) > 0 {
		return nil, s.signer.lied(errVerify)
	}
	if err := s.signer.key.verify([]byte(sealText), sig); err != nil {
		return nil, s.signer.lied(err)
	}
	return sig.Blob, nil
}

const (
	// SealedPrefix begins every sealed value (PROTOCOL 5).
	SealedPrefix = "pwenc:v1:"
	// MaxPlaintext bounds what may be sealed, in bytes.
	MaxPlaintext = 1 << 20
	// MaxAAD bounds the data that a sealed value carries in the clear, in bytes.
	MaxAAD = 1 << 10

	// maxSealed bounds a sealed value in bytes: base64 of JSON of base64.
	maxSealed = 2 << 20

	kidPrefix = "ssh-fp:SHA256:"
	sealAlg   = "A256GCM"
	nonceSize = 12
	tagSize   = 16
)

// sealedData is the content of a sealed value. Its fields are in the order of the members.
type sealedData struct {
	Version int64    `json:"v" min:"1" max:"1"`
	KeyID   string   `json:"kid" maxlen:"128"`
	Alg     string   `json:"alg" enum:"A256GCM"`
	Nonce   string   `json:"nonce" maxlen:"16"`
	Text    string   `json:"ct"`
	AAD     *string  `json:"aad,omitzero"`
	Time    *float64 `json:"ts,omitzero"` // seconds since 1970; written by other implementations, not authenticated, and ignored
}

// Sealed is a sealed value that is parsed and not opened yet.
type Sealed struct {
	keyID [sha256.Size]byte // of the public key
	nonce []byte
	text  []byte // with its tag
	aad   []byte
}

// ParseSealed parses a sealed value strictly: `pwenc:v1:` and the base64url of a JSON object with
// the members v, kid, alg, nonce and ct, optionally aad and ts, and no others. Each value must be
// in its canonical form, so that no two texts mean the same bytes. The seal does not protect ts; it
// is ignored, and String omits it. The error is a fault.CryptoBroken, and repeats nothing of the
// value.
func ParseSealed(text string) (*Sealed, error) {
	broken := func(problem string) error {
		return fault.CryptoBroken.New("the sealed value %s: pass it on as it was sealed, from %q to its end", problem, SealedPrefix)
	}
	payload, ok := strings.CutPrefix(text, SealedPrefix)
	switch {
	case !ok:
		return nil, broken("does not begin with " + SealedPrefix)
	case len(text) > maxSealed:
		return nil, broken("is too long")
	}
	raw, ok := decodeURL(payload)
	if !ok {
		return nil, broken("is not in base64url")
	}
	if !schema.Valid(raw) || bytes.IndexByte(raw, '\\') >= 0 {
		return nil, broken("holds no JSON, or has escapes in it")
	}
	decoded, failure := schema.TypeOf[sealedData]().Decode(raw)
	if failure != nil {
		return nil, broken("is not of version 1, or has other members than v, kid, alg, nonce, ct, aad and ts")
	}
	d := decoded.(*sealedData)
	s := &Sealed{}
	if s.keyID, ok = parseKeyID(d.KeyID); !ok {
		return nil, broken("names no key by its fingerprint")
	}
	if s.nonce, ok = decodeURL(d.Nonce); !ok || len(s.nonce) != nonceSize {
		return nil, broken("has no nonce of 12 bytes")
	}
	if s.text, ok = decodeURL(d.Text); !ok || len(s.text) < tagSize || len(s.text) > MaxPlaintext+tagSize {
		return nil, broken("has no ciphertext, or one that is too long")
	}
	if d.AAD != nil {
		if s.aad, ok = decodeURL(*d.AAD); !ok || len(s.aad) == 0 || len(s.aad) > MaxAAD {
			return nil, broken("has an aad that is empty or too long")
		}
	}
	return s, nil
}

// Fingerprint returns the fingerprint of the key that sealed the value, as ssh-keygen -l shows it.
func (s *Sealed) Fingerprint() string {
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(s.keyID[:])
}

// String formats the value as ParseSealed parses it.
func (s *Sealed) String() string {
	d := &sealedData{
		Version: 1, KeyID: keyIDText(s.keyID), Alg: sealAlg,
		Nonce: encodeURL(s.nonce), Text: encodeURL(s.text),
	}
	if len(s.aad) > 0 {
		aad := encodeURL(s.aad)
		d.AAD = &aad
	}
	return SealedPrefix + encodeURL(marshalData(d))
}

// keyIDText formats a key's id. The digest is in base64url, as other implementations of the format
// write and compare it; ssh-keygen -l shows the same digest with + and / in place of - and _.
func keyIDText(digest [sha256.Size]byte) string { return kidPrefix + encodeURL(digest[:]) }

// parseKeyID parses a key's id, with its digest in either alphabet.
func parseKeyID(text string) (digest [sha256.Size]byte, ok bool) {
	text, ok = strings.CutPrefix(text, kidPrefix)
	if !ok {
		return digest, false
	}
	raw, ok := decodeURL(text)
	if !ok {
		var err error
		raw, err = base64.RawStdEncoding.DecodeString(text)
		if err != nil || base64.RawStdEncoding.EncodeToString(raw) != text {
			return digest, false
		}
	}
	if len(raw) != sha256.Size {
		return digest, false
	}
	return [sha256.Size]byte(raw), true
}

func encodeURL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decodeURL decodes base64url in its one canonical form: no padding, no line ends, no loose bits.
func decodeURL(text string) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return raw, err == nil && encodeURL(raw) == text
}

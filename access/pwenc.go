package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

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

// sealedData is what a sealed value holds. Its order is that of the members.
type sealedData struct {
	Version int64    `json:"v" min:"1" max:"1"`
	KeyID   string   `json:"kid" maxlen:"128"`
	Alg     string   `json:"alg" enum:"A256GCM"`
	Nonce   string   `json:"nonce" maxlen:"16"`
	Text    string   `json:"ct"`
	AAD     *string  `json:"aad,omitzero"`
	Time    *float64 `json:"ts,omitzero"` // seconds since 1970; others write it, nobody vouches for it, so it says nothing
}

// Sealed is a sealed value that was read and not opened yet.
type Sealed struct {
	keyID [sha256.Size]byte // of the public key
	nonce []byte
	text  []byte // with its tag
	aad   []byte
}

// ParseSealed reads a sealed value strictly: `pwenc:v1:` and the base64url of a JSON object that has the members v, kid, alg,
// nonce and ct, perhaps aad and ts, and no others. Each value has to be written in its one form, and no two of them stand
// for the same bytes. ts is not protected by the seal, is not read, and is not written by String. The error is a
// fault.CryptoBroken, and repeats nothing of the value.
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

// Fingerprint returns that of the key that sealed the value, as ssh-keygen -l shows it.
func (s *Sealed) Fingerprint() string {
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(s.keyID[:])
}

// String writes the value as ParseSealed reads it.
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

// keyIDText writes a key's id. The digest is in the URL's alphabet, as other implementations of the format write it and
// compare it; ssh-keygen -l shows the same digest with + and / where this has - and _.
func keyIDText(digest [sha256.Size]byte) string { return kidPrefix + encodeURL(digest[:]) }

// parseKeyID reads a key's id, with its digest in either alphabet.
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

// decodeURL takes base64url in its one form: no padding, no line ends, no loose bits.
func decodeURL(text string) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return raw, err == nil && encodeURL(raw) == text
}

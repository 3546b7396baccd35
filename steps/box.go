package steps

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// box seals contents with a key of the kernel.
type box struct {
	aead cipher.AEAD
	mac  []byte
}

// newBox returns nil without a key.
func newBox(key []byte) (*box, error) {
	if len(key) == 0 {
		return nil, nil
	}
	derive := func(what string) ([]byte, error) { return hkdf.Key(sha256.New, key, nil, "steps: "+what, 32) }
	sealing, err := derive("content")
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	mac, err := derive("name")
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	aead, err := chacha20poly1305.NewX(sealing)
	return &box{aead, mac}, err
}

func (b *box) name(piece []byte) (ref Ref) {
	h := hmac.New(sha256.New, b.mac)
	h.Write(piece)
	h.Sum(ref[:0])
	return ref
}

func (b *box) seal(plain []byte) []byte {
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(plain)+b.aead.Overhead())
	rand.Read(nonce)
	return b.aead.Seal(nonce, nonce, plain, nil)
}

func (b *box) open(sealed []byte) ([]byte, error) {
	if b == nil || len(sealed) < b.aead.NonceSize() {
		return nil, fmt.Errorf("%w: there is no key to open it with", ErrMissing)
	}
	plain, err := b.aead.Open(nil, sealed[:b.aead.NonceSize()], sealed[b.aead.NonceSize():], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it is sealed with another key", ErrMissing)
	}
	return plain, nil
}

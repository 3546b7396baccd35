package access

import (
	"context"
	"crypto/cipher"
)

// Held seals and opens as the Sealer does that it was made from, with sealing keys that are derived once and kept. It asks
// no agent and no file any more, so it never waits; in return it goes on when the SSH key has been taken from its
// agent, until it is dropped.
//
// It may be used by many goroutines.
type Held struct {
	key   PublicKey
	aeads []cipher.AEAD // one for each algorithm by which a value may have been sealed; ours is the first
}

// Hold derives the sealing keys. The error is one of the signer's, or ctx's cause.
func (s *Sealer) Hold(ctx context.Context) (*Held, error) {
	h := &Held{key: s.signer.key}
	for i, algorithm := range s.algorithms() {
		aead, err := s.cipher(ctx, algorithm)
		switch {
		case err == nil:
			h.aeads = append(h.aeads, aead)
		case i == 0 || ctx.Err() != nil:
			return nil, err
		default: // an agent may do without SHA-1
		}
	}
	return h, nil
}

// Key is the public key that stands for the sealing key.
func (h *Held) Key() PublicKey { return h.key }

// KeyID names the key as sealed values do, "ssh-fp:SHA256:…".
func (h *Held) KeyID() string { return keyIDText(h.key.id()) }

// Algorithm names the cipher as sealed values do.
func (h *Held) Algorithm() string { return sealAlg }

// Seal is Sealer.Seal.
func (h *Held) Seal(plaintext, aad []byte) (string, error) {
	if err := sealable(plaintext, aad); err != nil {
		return "", err
	}
	return h.key.seal(h.aeads[0], plaintext, aad), nil
}

// Open is Sealer.Open.
func (h *Held) Open(text string) (plaintext, aad []byte, err error) {
	sealed, err := h.key.sealed(text)
	if err != nil {
		return nil, nil, err
	}
	for _, aead := range h.aeads {
		if plaintext, err := aead.Open(nil, sealed.nonce, sealed.text, sealed.aad); err == nil {
			return plaintext, sealed.aad, nil
		}
	}
	return nil, nil, h.key.brokenSeal()
}

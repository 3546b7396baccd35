package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// sealText is what a key signs so that a sealing key can be derived from the signature. It is signed as it is, without
	// SSHSIG, and is the same for all implementations of the format: nothing else of ours may ever be signed that way.
	sealText = "PromptWareOS::pwenc::v1"
	sealSalt = "PromptwareOS"
	sealInfo = "pwenc:v1"
)

// Sealer seals and opens values with a key that is derived from an SSH key, which may lie in an ssh-agent. The derived
// key is made anew for each value and cleared after it, as far as the language lets: the cipher keeps a schedule of it
// until it is collected.
//
// It may be used by many goroutines. Nonces are random; one key may seal some four billion values.
type Sealer struct{ signer *Signer }

// Enroll returns a Sealer of the key if it can be one: it has to sign the same text the same way each time, else what was
// sealed could never be opened. So only ed25519 and rsa will do, and they are tried. The error is a fault of
// CryptoCannot, one of the signer's, or ctx's cause.
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

// Key is the public key that stands for the sealing key.
func (s *Sealer) Key() PublicKey { return s.signer.key }

// KeyID names the key as sealed values do, "ssh-fp:SHA256:…".
func (s *Sealer) KeyID() string { return keyIDText(s.signer.key.id()) }

func (k PublicKey) id() [sha256.Size]byte { return sha256.Sum256([]byte(k.blob)) }

// Seal seals a plaintext of at most MaxPlaintext bytes. aad, of at most MaxAAD bytes, goes with the value in the clear and
// cannot be changed; nil for none, which every implementation of the format can open. The plaintext stays the caller's
// to clear.
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

// sealable refuses what is too long to be sealed.
func sealable(plaintext, aad []byte) error {
	if len(plaintext) > MaxPlaintext || len(aad) > MaxAAD {
		return fault.CryptoCannot.New("at most %d bytes can be sealed, with at most %d in the clear: seal a key for what is longer", MaxPlaintext, MaxAAD)
	}
	return nil
}

// seal seals with the sealing key of k.
func (k PublicKey) seal(aead cipher.AEAD, plaintext, aad []byte) string {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // it never fails: the program ends first
	sealed := &Sealed{keyID: k.id(), nonce: nonce, aad: aad, text: aead.Seal(nil, nonce, plaintext, aad)}
	return sealed.String()
}

// Open opens a sealed value and returns its plaintext, which the caller clears after use, and its aad. The error is an
// *fault.Fault that says nothing of what is inside, one of the signer's, or ctx's cause.
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
			continue // an agent may do without SHA-1
		}
		if plaintext, err := aead.Open(nil, sealed.nonce, sealed.text, sealed.aad); err == nil {
			return plaintext, sealed.aad, nil
		}
	}
	return nil, nil, s.signer.key.brokenSeal()
}

// sealed reads a value that has to be one of k's.
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

// brokenSeal is the error of a value that k has sealed, and that does not open.
func (k PublicKey) brokenSeal() error {
	return fault.CryptoBroken.New("the sealed value was changed after it was sealed: take it from where it came from").With("key", k.Fingerprint())
}

// algorithms are those by which a value may have been sealed; ours is the first. The format does not say which signature
// of an RSA key it means: what an agent does unasked is SHA-1 with OpenSSH, what a program of today asks for is SHA-2. All are
// as good a secret here, where nobody but us chooses the text, but an agent may refuse SHA-1 one day.
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

// signature returns the raw bytes of the signature of sealText: what an ssh-agent returns after the algorithm's name. It
// is verified, so that no value is sealed that the key could not open.
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

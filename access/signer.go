package access

import (
	"context"
	"crypto/rand"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

// Signer is a key that signs: one in an ssh-agent, in a file, or of the program itself.
type Signer struct {
	key    PublicKey
	source string
	// sign returns the raw signature of data. An empty algorithm is whatever the key does unasked.
	sign func(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error)
}

// NewSigner returns a Signer over a key of the library; source says where it comes from, for messages. The error is an
// fault: the key is of a type or a size that is not accepted.
func NewSigner(key ssh.Signer, source string) (*Signer, error) {
	public, failure := parseKeyBlob(key.PublicKey().Marshal())
	if failure != nil {
		return nil, failure
	}
	return &Signer{key: public, source: source, sign: signWith(key)}, nil
}

// signWith signs with a key that lies in memory.
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

// Sign signs message under a namespace. The signature is verified before it is returned: an agent or a card that signs
// something else, or with another key, is found out here and not by the daemon. The error is an *fault.Fault, or ctx's cause.
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
	// The raw form is read as a daemon would, so that nothing leaves that a daemon could not read.
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
	return fault.AuthAgentLied.New("%s returned something that is no signature by %s: nothing was sent; name another key with --identity",
		s.source, s.key.Fingerprint()).With("key", s.key.Fingerprint()).Wrap(err)
}

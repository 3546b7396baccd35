package access

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Certificate returns a certificate of the key, by that key, for TLS ends that know the key and look
// at nothing else. It names who uses the key.
func (k *HostKey) Certificate(name string) (c tls.Certificate, err error) {
	by := certifier{k}
	if by.key.Key().Ed25519() == nil {
		return c, fault.AuthKeyType.New("the host key is of type %s: TLS takes ssh-ed25519, which a kernel makes if it has none", k.Key().Type())
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // it ends with the key
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, by.Public(), by)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: by}, err
}

// ShownKey returns the key of the other end's certificate. The handshake has proven that the other end
// holds it.
func ShownKey(state *tls.ConnectionState) (PublicKey, error) {
	if len(state.PeerCertificates) == 0 {
		return PublicKey{}, fault.AuthHost.New("the other end shows no key")
	}
	return NewPublicKey(state.PeerCertificates[0].PublicKey)
}

// certifier is a host key as crypto/tls uses it.
type certifier struct{ key *HostKey }

// Public implements crypto.Signer.
func (c certifier) Public() crypto.PublicKey { return c.key.Key().Ed25519() }

// Sign implements crypto.Signer. An ed25519 key signs the message itself, not a digest.
func (c certifier) Sign(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	return c.key.Sign(message)
}

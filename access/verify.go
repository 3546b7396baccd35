package access

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

// flagTouched is the bit of a security key's signature that says that somebody touched it.
const flagTouched = 0x01

// Verify checks that s is a signature of message by its key under the namespace. A security key has to have been touched
// unless noTouch says that it need not. The error is a fault.
//
// It says nothing of whose the key is: look s.Key up first, which also leaves the work to keys that are known.
func (s *Signature) Verify(namespace string, message []byte, noTouch bool) error {
	if s.Namespace != namespace {
		return fault.AuthNamespace.New("the signature was made for %s: sign with \"ssh-keygen -Y sign -n %s\"",
			printable(s.Namespace, 64), namespace).With("key", s.Key.Fingerprint())
	}
	if err := s.Key.verify(signedData(namespace, s.Hash, message), s.raw); err != nil {
		return fault.AuthSignature.New("the signature does not fit what was to be signed, for this connection alone").With("key", s.Key.Fingerprint()).Wrap(err)
	}
	if !noTouch && s.Key.typ == ssh.KeyAlgoSKED25519 && s.raw.Rest[0]&flagTouched == 0 {
		return fault.AuthNoTouch.New("the security key was not touched: touch it when it blinks, or set no-touch-required for it in authorized_keys").With("key", s.Key.Fingerprint())
	}
	return nil
}

// verify checks a raw signature of data, whether a security key was touched or not: the library insists on that.
func (k PublicKey) verify(data []byte, sig *ssh.Signature) error {
	if k.typ == ssh.KeyAlgoSKED25519 {
		return k.verifySecurityKey(data, sig)
	}
	key := k.parsed()
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		// The library pads a short RSA signature, so that one signature had several forms.
		if n, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && len(sig.Blob) != n.Size() {
			return errVerify
		}
	}
	return key.Verify(data, sig)
}

// errVerify is a signature that is none.
var errVerify = fault.AuthSignature.New("the signature does not fit")

// verifySecurityKey checks the signature of a FIDO authenticator, which signs its application, its flags and its counter along
// with the data (OpenSSH's PROTOCOL.u2f).
func (k PublicKey) verifySecurityKey(data []byte, sig *ssh.Signature) error {
	var key struct {
		Type        string
		Point       []byte
		Application string
	}
	err := ssh.Unmarshal([]byte(k.blob), &key)
	// A key that was made for a web site signs what the site's browser wants.
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

package access

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// HostKey is the kernel's own key: it signs the journal's checkpoints.
type HostKey struct{ signer ssh.Signer }

// OpenHostKey reads the host key of the state directory, or makes one at the first start. It is an
// OpenSSH private key, so that ssh-keygen can show it.
func OpenHostKey(dir string) (*HostKey, error) {
	path := HostKeyFile(dir)
	key, err := ReadHostKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = MakeHostKey(path + ".new"); err == nil {
			err = TakeHostKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open host key: %w", err)
	}
	return key, nil
}

// ReadHostKey reads a host key.
func ReadHostKey(path string) (*HostKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &HostKey{signer}, nil
}

// MakeHostKey writes a new key under a temporary name: a crash leaves a whole key or none.
func MakeHostKey(path string) (*HostKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "pwos kernel")
	if err != nil {
		return nil, err
	}
	fresh, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fresh.Write(pem.EncodeToMemory(block))
	// Sync before the rename: after a power cut the name could otherwise exist without the key.
	return &HostKey{signer}, errors.Join(err, fresh.Sync(), fresh.Close())
}

// TakeHostKey renames the key that MakeHostKey wrote next to path to its final name.
func TakeHostKey(path string) error {
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable: clients pin the key, and it signs the journal's
// checkpoints.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// HostKeyFile is the path of the host key in a state directory.
func HostKeyFile(dir string) string { return filepath.Join(dir, "host_key") }

// Signer returns the key with which the kernel proves itself to clients.
func (k *HostKey) Signer() (*Signer, error) { return NewSigner(k.signer, "host key") }

// Public returns the key as a line of authorized_keys.
func (k *HostKey) Public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// Sign returns the raw ed25519 signature of data.
func (k *HostKey) Sign(data []byte) ([]byte, error) {
	sig, err := k.signer.Sign(rand.Reader, data)
	if err != nil {
		return nil, err
	}
	return sig.Blob, nil
}

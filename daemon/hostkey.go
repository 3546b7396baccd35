package daemon

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

// hostKey is the kernel's own key: it signs the journal's checkpoints.
type hostKey struct{ signer ssh.Signer }

// openHostKey reads the host key of the state directory, or makes one at the first start: an OpenSSH private key, so that
// ssh-keygen can show it.
func openHostKey(dir string) (*hostKey, error) {
	path := hostKeyFile(dir)
	key, err := readHostKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = makeHostKey(path + ".new"); err == nil {
			err = takeHostKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open host key: %w", err)
	}
	return key, nil
}

func readHostKey(path string) (*hostKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &hostKey{signer}, nil
}

// makeHostKey writes a fresh key under a name that is not its own yet: a crash leaves a whole key or none.
func makeHostKey(path string) (*hostKey, error) {
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
	// On disk before it has its name: after a power cut the name could else be there without the key.
	return &hostKey{signer}, errors.Join(err, fresh.Sync(), fresh.Close())
}

// takeHostKey gives the key that makeHostKey wrote beside path its name.
func takeHostKey(path string) error {
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable: clients remember the key, and the journal's checkpoints are signed by it.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Public returns the key as a line of authorized_keys.
func (k *hostKey) Public() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
}

// Sign returns the raw ed25519 signature of data.
func (k *hostKey) Sign(data []byte) ([]byte, error) {
	sig, err := k.signer.Sign(rand.Reader, data)
	if err != nil {
		return nil, err
	}
	return sig.Blob, nil
}

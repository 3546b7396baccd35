package kernel_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// sealing gives a kernel a key to seal with: a fresh one, in a file of its own.
func sealing(t *testing.T) func(*config.Config) {
	t.Helper()
	return withIdentity(sealingKey(t))
}

// withIdentity gives a kernel the key of a file.
func withIdentity(path string) func(*config.Config) {
	return func(cfg *config.Config) { cfg.Crypto.Identity = path }
}

// sealingKey makes a file with a fresh key that can seal, and returns its path.
func sealingKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "identity")
	testkit.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	return path
}

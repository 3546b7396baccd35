package kernel_test

import (
	"path/filepath"
	"testing"

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
	path := filepath.Join(t.TempDir(), "identity")
	testkit.NewKey(t, path)
	return path
}

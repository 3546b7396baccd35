package kernel_test

import (
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// sealing configures a kernel with a new sealing key, in a separate file.
func sealing(t *testing.T) func(*config.Config) {
	t.Helper()
	return withIdentity(sealingKey(t))
}

// withIdentity configures a kernel with the key in a file.
func withIdentity(path string) func(*config.Config) {
	return func(cfg *config.Config) { cfg.Crypto.Identity = path }
}

// sealingKey creates a file with a new key that can seal, and returns its path.
func sealingKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "identity")
	testkit.NewKey(t, path)
	return path
}

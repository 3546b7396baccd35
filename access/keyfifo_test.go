package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// A FIFO beside a key file that does not show its public key keeps nobody waiting, neither forever nor past a signal.
func TestPublicKeyIsNoFIFO(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, []byte("-----BEGIN SOMETHING-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path+".pub", 0o600); err != nil {
		t.Fatal(err)
	}
	keys := access.Identities{Identity: path}
	if _, err := keys.Find(t.Context()); !errors.Is(err, fault.AuthKeyFile) {
		t.Errorf("got %v", err)
	}
}

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

// TestPublicKeyIsNoFIFO: a FIFO in place of the public key file is an error at once: an open that
// waits would ignore signals.
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

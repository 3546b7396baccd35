package client_test

import (
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRemoteBlobs: a file that a kernel on another machine names is not read here, and none is written for it. A kernel
// on this machine shares its files with its clients.
func TestRemoteBlobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.WriteFile(t, file, "text")
	if read, written := client.Blobs(access.Local{}, file, dir); read != nil || written != nil {
		t.Errorf("on this machine: %v, %v", read, written)
	}
	if read, written := client.Blobs(access.TLS{}, file, dir); read == nil || written == nil {
		t.Errorf("on another machine: %v, %v", read, written)
	}
}

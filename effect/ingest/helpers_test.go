package ingest_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// noon is the time of the tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// web has the contents of a fake server, by URL.
type web map[string]string

func (w web) fetch(_ context.Context, address string, most int64) ([]byte, error) {
	text, ok := w[address]
	if !ok {
		return nil, fault.FileNotFound.New("status 404")
	}
	return []byte(text)[:min(int64(len(text)), most+1)], nil
}

// pipeline returns a pipeline with a new root that has the given files, and a fake web.
func pipeline(t *testing.T, files map[string]string, w web) *ingest.Pipeline {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)))
	}
	space, err := uri.New(root)
	testkit.Must(t, err)
	tree, err := rootfs.Open(space)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = tree.Close() })
	return &ingest.Pipeline{Space: space, Files: tree, Web: w.fetch}
}

// key returns a signing key that depends only on the seed.
func key(t *testing.T, seed byte) *access.Signer {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	private, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(raw))
	testkit.Must(t, err)
	signer, err := access.NewSigner(private, "test")
	testkit.Must(t, err)
	return signer
}

func sign(t *testing.T, k *access.Signer, namespace, text string) string {
	t.Helper()
	sig, err := k.Sign(t.Context(), namespace, []byte(text))
	testkit.Must(t, err)
	return sig.Armor()
}

// trusting returns a Policy.Trusted that trusts one key until one second after noon.
func trusting(k *access.Signer) func(access.PublicKey, time.Time) error {
	return func(other access.PublicKey, now time.Time) error {
		if other != k.Key() || now.After(noon.Add(time.Second)) {
			return errors.New("not trusted")
		}
		return nil
	}
}

func sri(algorithm, text string) string {
	var sum []byte
	switch algorithm {
	case "sha256":
		s := sha256.Sum256([]byte(text))
		sum = s[:]
	case "sha384":
		s := sha512.Sum384([]byte(text))
		sum = s[:]
	default:
		s := sha512.Sum512([]byte(text))
		sum = s[:]
	}
	return algorithm + "-" + base64.StdEncoding.EncodeToString(sum)
}

// failed fails the test unless err is the error want of a phase. An error without the prefix of a later phase is of the phase fetch.
func failed(t *testing.T, err error, phase string, want error) {
	t.Helper()
	in := "fetch"
	for _, later := range []string{"validate", "load"} {
		if err != nil && strings.HasPrefix(err.Error(), later+": ") {
			in = later
		}
	}
	if in != phase || !errors.Is(err, want) {
		t.Errorf("%v, want %v in %s", err, want, phase)
	}
}

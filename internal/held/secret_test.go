package held_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/held"
)

func TestLooksSecret(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".env": true, ".env.local": true, ".env.example": false, "id_ed25519": true, "id_ed25519.pub": false, "Prod.PEM": true, "cacert.pem": false,
		"server.key": true, "credentials": true, "client_secret.json": true, "token.txt": true, "token.go": false, "passwords.md": false,
		"terraform.tfstate": true, "README": false, "keyboard.js": false, ".netrc": true,
	} {
		if got := held.LooksSecret(name); got != want {
			t.Errorf("LooksSecret(%q) = %v", name, got)
		}
	}
}

// TestSecrets: the search is bounded in depth and number, follows no links, and ends with its context.
func TestSecrets(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, name := range []string{"a.key", "one/b.key", "one/two/three/c.key", "one/two/three/four/d.key", "node_modules/e.key", "skip/f.key"} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "one"), filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	skip := func(path string) bool { return path == filepath.Join(top, "skip") }
	found := func(ctx context.Context, many int) (names []string) {
		for _, path := range held.Secrets(ctx, []string{top, filepath.Join(top, "gone")}, many, skip) {
			name, err := filepath.Rel(top, path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"a.key", "one/b.key", "one/two/three/c.key"}, found(t.Context(), 9)); diff != "" {
		t.Error(diff)
	}
	if got := found(t.Context(), 2); len(got) != 2 {
		t.Errorf("found %q, want two", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := found(ended, 9); got != nil {
		t.Errorf("found %q after the end", got)
	}
}

package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestBearer checks that a missing token file is created with mode 0600 and read again, and that a file is refused if other users may read
// it or if it has no valid token.
func TestBearer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "new")
	made, err := pwos.Bearer(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pwos.Bearer(file)
	info, statErr := os.Stat(file)
	if errors.Join(err, statErr) != nil || made != again || len(made) < 16 || info.Mode() != 0o600 {
		t.Errorf("made %q, read %q, %v %v", made, again, err, statErr)
	}
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"open":  {"a-token-of-some-length\n", 0o644, "open to other users"},
		"short": {"short\n", 0o600, "one word of at least"},
		"words": {"two words of some length\n", 0o600, "one word of at least"},
		"empty": {"", 0o600, "one word of at least"},
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte(test.text), test.mode), os.Chmod(file, test.mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := pwos.Bearer(file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := pwos.Bearer(filepath.Join(dir, "none", "f")); err == nil {
		t.Error("a token was made in a directory that is not there")
	}
}

package blob_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRedact: blobs that are the value are removed, under each of their names; those that only contain it, or are in use,
// are listed.
func TestRedact(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	secret := strings.Repeat("secret", 20_000) // longer than what is read at a time
	_, err := s.Folder(7, -1, -1)
	testkit.Must(t, err)
	_, err = s.Put(7, own, false, strings.NewReader(secret)) // twice: in the store and in the folder
	testkit.Must(t, err)
	adopt(t, s, 8)
	_, err = s.Put(8, own, false, strings.NewReader(secret)) // twice, as above
	testkit.Must(t, err)
	put(t, s, other, secret)
	plain := put(t, s, own, "nothing of it")
	used := put(t, s, own, secret)
	reader, err := s.Open(own, used.Pointer)
	testkit.Must(t, err)
	for name, text := range map[string]string{"line": secret + "\n", "begins": secret + " and more", "ends": strings.Repeat("x", 1<<16-7) + secret} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	testkit.Must(t, os.Symlink("/etc/hostname", filepath.Join(dir, "link")))

	removed, left, err := s.Redact(t.Context(), []byte(secret))
	testkit.Must(t, err)
	slices.Sort(left)
	want := []string{used.Pointer.Path, filepath.Join(dir, "begins"), filepath.Join(dir, "ends")}
	slices.Sort(want)
	if removed != 6 || !slices.Equal(left, want) {
		t.Errorf("removed %d, left %q, want 6 and %q", removed, left, want)
	}
	if text, err := read(t, s, own, plain.Pointer); err != nil || text != "nothing of it" {
		t.Errorf("a blob without the value: %q, %v", text, err)
	}
	if n := s.Usage().Files; n != 2 {
		t.Errorf("the usage has %d files", n)
	}
	testkit.Must(t, reader.Close())
	if removed, _, err := s.Redact(t.Context(), []byte(secret)); removed != 1 || err != nil {
		t.Errorf("after the reader was closed: removed %d, %v", removed, err)
	}

	// A short value is only compared with whole blobs, and an empty one with none.
	put(t, s, own, "abc")
	for value, want := range map[string]int{"bc": 0, "": 0, "abc": 1} {
		if removed, left, err := blob.RedactDir(t.Context(), dir, []byte(value)); removed != want || err != nil || value != "abc" && left != nil {
			t.Errorf("%q: %d, %q, %v", value, removed, left, err)
		}
	}
	if removed, left, err := blob.RedactDir(t.Context(), filepath.Join(dir, "none"), []byte(secret)); removed != 0 || left != nil || err != nil {
		t.Errorf("without a directory: %d, %q, %v", removed, left, err)
	}
}

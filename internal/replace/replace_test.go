package replace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestFile replaces a file that readers have open, who still see the old text. The mode is that of the first call,
// independent of the umask, and no other file is left.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, replace.File(path, []byte("old"), 0o666))
	open := testkit.Value(os.Open(path))(t)
	defer open.Close()
	testkit.Must(t, replace.File(path, []byte("new"), 0o600))
	if got := testkit.ReadFile(t, path); got != "new" {
		t.Errorf("the file has %q", got)
	}
	old := make([]byte, 4)
	if n, _ := open.Read(old); string(old[:n]) != "old" {
		t.Errorf("a reader that had it open sees %q", old[:n])
	}
	if mode := testkit.Value(os.Stat(path))(t).Mode(); mode != 0o666 {
		t.Errorf("its mode is %v", mode)
	}
	if all := testkit.Value(os.ReadDir(filepath.Dir(path)))(t); len(all) != 1 {
		t.Errorf("%d files are there", len(all))
	}
}

// TestFileFails: the old text stays if the new one cannot be written.
func TestFileFails(t *testing.T) {
	t.Parallel()
	if err := replace.File(filepath.Join(t.TempDir(), "missing", "file"), nil, 0o600); err == nil {
		t.Error("a file in a folder that is not there was written")
	}
}

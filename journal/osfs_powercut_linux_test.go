//go:build pwos_powercut

package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// TestPowerCut: before a sync, changes are visible only to the process that made them.
func TestPowerCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	write := testkit.Value(journal.OSFS{}.Create(name))(t)
	defer write.Close()
	read := testkit.Value(journal.OSFS{}.Open(name))(t)
	defer read.Close()
	see := func(want, disk string) {
		t.Helper()
		got := make([]byte, 64)
		n, _ := read.ReadAt(got, 0)
		if size, err := read.Size(); err != nil || size != int64(len(want)) || string(got[:n]) != want {
			t.Errorf("read %q, size %d, %v, want %q", got[:n], size, err, want)
		}
		if text := string(testkit.Value(os.ReadFile(name))(t)); text != disk {
			t.Errorf("the disk has %q, want %q", text, disk)
		}
	}
	put := func(text string, off int64) {
		t.Helper()
		testkit.Value(write.WriteAt([]byte(text), off))(t)
	}
	put("one two", 0)
	see("one two", "")
	testkit.Must(t, write.Sync())
	see("one two", "one two")
	put("TWO three", 4)
	see("one TWO three", "one two")
	testkit.Must(t, write.Truncate(7))
	put("!", 8)
	see("one TWO\x00!", "one two")
	testkit.Must(t, write.Sync())
	see("one TWO\x00!", "one TWO\x00!")
}

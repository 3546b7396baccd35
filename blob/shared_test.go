package blob_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// adopt gives a process a directory of its own, and returns it.
func adopt(t *testing.T, s *blob.Store, pid int64) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	testkit.Must(t, err)
	testkit.Must(t, s.Adopt(pid, root, -1, -1))
	return dir
}

// readFor returns what a reference of a process names.
func readFor(t *testing.T, s *blob.Store, pid int64, p schema.BlobPointer) (string, error) {
	t.Helper()
	content, err := s.Read(pid, own, p, 1<<20)
	return string(content), err
}

// TestShare: a process refers to the files of its own directory, which no other process sees, and finds there what was
// written for it, as a copy. All of it is there after a restart of the program, and nothing after its end.
func TestShare(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	seen := adopt(t, s, 7)
	adopt(t, s, 8)
	made := schema.BlobPointer{Scheme: "file", Path: filepath.Join(dir, "made")}
	testkit.Must(t, os.WriteFile(filepath.Join(seen, "made"), []byte("by 7"), 0o600))
	given, err := s.Put(7, own, false, strings.NewReader("for 7"))
	testkit.Must(t, err)
	name := filepath.Base(given.Pointer.Path)
	if text := testkit.ReadFile(t, filepath.Join(seen, name)); text != "for 7" {
		t.Errorf("the process sees %q", text)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(seen, name), []byte("forged"), 0o600))
	next := adopt(t, s, 7)
	for _, file := range []string{"made", name} {
		if _, err := os.Lstat(filepath.Join(next, file)); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
	for pid, want := range map[int64][2]string{7: {"by 7", "for 7"}, 8: {"", "for 7"}, 0: {"", "for 7"}} {
		if text, err := readFor(t, s, pid, made); text != want[0] || (want[0] == "") != errors.Is(err, fault.BlobNotFound) {
			t.Errorf("process %d reads %q, %v of the other's file", pid, text, err)
		}
		if text, err := readFor(t, s, pid, given.Pointer); text != want[1] {
			t.Errorf("process %d reads %q, %v, and not what the kernel wrote", pid, text, err)
		}
	}
	testkit.Must(t, s.End(7))
	if _, err := readFor(t, s, 7, made); !errors.Is(err, fault.BlobNotFound) {
		t.Errorf("after the end of the process: %v", err)
	}
	if text, err := readFor(t, s, 8, given.Pointer); text != "for 7" {
		t.Errorf("after the end of the process it was written for: %q, %v", text, err)
	}
}

// TestQuotaOfProcesses: what is written for one process is bounded, what is written for all leaves a reserve for the operator, and
// removed blobs no longer count.
func TestQuotaOfProcesses(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, blob.Options{DirBytes: 8000, Share: 4000, Now: c.now})
	write := func(pid int64, bytes int) error {
		_, err := s.Put(pid, own, false, strings.NewReader(strings.Repeat("x", bytes)))
		return err
	}
	for _, call := range []struct {
		pid   int64
		bytes int
		fits  bool
	}{{7, 4000, true}, {7, 1, false}, {8, 3001, false}, {8, 3000, true}, {9, 1, false}, {0, 1000, true}, {0, 1, false}} {
		err := write(call.pid, call.bytes)
		if (err == nil) != call.fits || err != nil && !errors.Is(err, fault.BlobNoRoom) {
			t.Errorf("%d bytes for process %d: %v", call.bytes, call.pid, err)
		}
	}
	if s.Trouble() == "" {
		t.Error("a full directory is no trouble")
	}
	c.advance(2 * 3600e9)
	_, err := s.Sweep()
	testkit.Must(t, err)
	testkit.Must(t, write(7, 4000))
	if text := s.Trouble(); text != "" {
		t.Errorf("a half full directory is trouble: %s", text)
	}
}

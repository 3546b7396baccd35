package blob_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// A link that exists only while the name is checked is detected by the file's ctime, although the file has one link
// whenever its links are counted. Otherwise a swap at the right moments could open another file.
func TestLinkForAMoment(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	outside, name := filepath.Join(base, "outside"), filepath.Join(base, "name")
	testkit.Must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	f, err := os.Open(outside)
	testkit.Must(t, err)
	defer f.Close()
	before, err := f.Stat()
	testkit.Must(t, err)
	later := time.Now().Add(time.Minute)
	testkit.Must(t, blob.Agree(later, before, before, before))

	// File systems count time in steps, so the test continues until a step has passed.
	for deadline := time.Now().Add(30 * time.Second); ; {
		testkit.Must(t, os.Link(outside, name))
		named, err := os.Lstat(name)
		testkit.Must(t, err)
		testkit.Must(t, os.Remove(name))
		after, err := f.Stat()
		testkit.Must(t, err)
		if err := blob.Agree(later, before, named, after); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a temporary link was not detected")
		}
	}
	if err := blob.Agree(time.Now().Add(-time.Minute), before, before, before); err == nil {
		t.Error("a file that changed during the check was accepted")
	}
}

// A file that has just changed is waited for once. If it changes again, the error says to wait.
func TestYoung(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	patient := open(t, blob.Options{Dir: dir})
	name := filepath.Join(dir, "young")
	testkit.Must(t, os.WriteFile(name, []byte("young"), 0o600))
	if text, err := read(t, patient, own, file(name)); err != nil || text != "young" {
		t.Errorf("%q, %v", text, err)
	}
	testkit.Must(t, patient.Close())
	hasty := open(t, blob.Options{Dir: dir})
	blob.Impatient(hasty)
	conflict := false
	for deadline := time.Now().Add(30 * time.Second); !conflict && time.Now().Before(deadline); {
		testkit.Must(t, os.WriteFile(name, []byte("younger"), 0o600))
		if _, err := hasty.Open(own, file(name)); err != nil { // this process may have been stopped in between
			want(t, err, fault.BlobChanging, "try again")
			conflict = true
		}
	}
	if !conflict {
		t.Error("no file was refused although it has just changed")
	}
}

// A file of another user is not a blob, even if this user can read it.
func TestForeignOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	name := filepath.Join(dir, "theirs")
	testkit.Must(t, os.WriteFile(name, []byte("text"), 0o644))
	if err := os.Chown(name, os.Geteuid()+1, -1); err != nil {
		t.Skip("this user cannot change the owner of a file:", err)
	}
	_, err := s.Open(own, file(name))
	want(t, err, fault.BlobForbidden)
}

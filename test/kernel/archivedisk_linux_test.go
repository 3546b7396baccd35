package kernel_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// disk mounts an empty file system of the given size in bytes.
func disk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("pwos-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", bytes))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("only root may mount a file system")
	}
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(dir, 0)) })
	return dir
}

// TestArchiveFullDisk archives to another file system. If that is full nothing is moved, and the journal is unchanged; when
// there is room the same directory can be used.
func TestArchiveFullDisk(t *testing.T) {
	t.Parallel()
	small, large := disk(t, 64<<10), disk(t, 4<<20)
	d := start(t)
	c := d.dial(t)
	for range 20 {
		c.call("Memory.Set", fmt.Sprintf(`{"key":"k","value":%q}`, strings.Repeat("x", 8<<10)), nil)
	}
	archive := func(dir string) (answer, schema.AuditArchiveOutput) {
		a := c.ask("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, filepath.Join(dir, "archive"), allEntries))
		out, invalid := schema.TypeOf[schema.AuditArchiveOutput]().Decode(a.Data)
		if invalid != nil {
			return a, schema.AuditArchiveOutput{}
		}
		return a, *out.(*schema.AuditArchiveOutput)
	}
	for range 2 { // the second time with the files of the first attempt
		if a, _ := archive(small); a.Kind != "error" || !strings.Contains(string(a.Data), "its disk is full") {
			t.Fatalf("on a full disk: %s", a.Data)
		}
	}
	var proof schema.AuditVerifyOutput
	c.call("Audit.Verify", `{}`, &proof)
	if !proof.OK || proof.Archived != nil {
		t.Errorf("after that: %+v", proof)
	}
	c.call("Audit.Show", `{"seq":2}`, nil)
	testkit.Must(t, unix.Mount("", small, "", unix.MS_REMOUNT, "size=4m"))
	if a, out := archive(small); out.Segments == 0 {
		t.Fatalf("with room: %s", a.Data)
	}
	c.call("Memory.Set", `{"key":"k","value":1}`, nil)
	if a, out := archive(large); out.Segments == 0 {
		t.Fatalf("elsewhere: %s", a.Data)
	}
	proof = schema.AuditVerifyOutput{}
	c.call("Audit.Verify", `{}`, &proof)
	if !proof.OK || proof.Archived == nil {
		t.Errorf("in the end: %+v", proof)
	}
	c.call("Audit.Show", `{"seq":2}`, nil)
	segments, err := filepath.Glob(small + "/archive/*")
	testkit.Must(t, err)
	for _, name := range segments {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

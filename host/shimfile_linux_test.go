package host_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestShimFile: programs are started by the file that was named, as it was when the host was opened.
func TestShimFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shim")
	self := testkit.Value(os.Executable())(t)
	if os.Link(self, path) != nil { // another file system
		testkit.WriteProgram(t, path, testkit.Value(os.ReadFile(self))(t))
	}
	h := testkit.Value(host.New(host.Options{Shim: path}))(t)
	t.Cleanup(func() { h.Close(t.Context(), 0) })
	testkit.Must(t, os.Rename(path, path+".old"))
	testkit.Must(t, os.WriteFile(path, []byte("another build"), 0o755))
	p := start(t, h, helper(t, "t-idle"))
	status := testkit.ReadFile(t, "/proc/"+strconv.Itoa(p.OSPID())+"/status")
	_, rest, _ := strings.Cut(status, "PPid:")
	exe := testkit.Value(os.Readlink("/proc/" + strings.Fields(rest)[0] + "/exe"))(t)
	if exe != path+".old" && exe != self {
		t.Errorf("the program was started by %s, want %s", exe, path+".old")
	}
	if _, err := host.New(host.Options{Shim: filepath.Join(dir, "none")}); err == nil {
		t.Error("a host opens with a shim that does not exist")
	}
}

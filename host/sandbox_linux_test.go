package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// level skips a test that needs a later Landlock.
func level(t *testing.T, h *host.Host, least int) {
	t.Helper()
	if have := host.MeansOf(h).ABI; have < least {
		t.Skipf("this kernel has Landlock v%d, the promise needs v%d", have, least)
	}
}

// strict skips a test on a machine without a strict sandbox.
func strict(t *testing.T, h *host.Host) {
	t.Helper()
	if has := host.MeansOf(h); has.ABI < 3 || !has.Filter || !has.Mounts || !has.Overlay || !has.IPC || !has.Network {
		t.Skipf("this machine lacks what a strict sandbox needs: %+v", has)
	}
}

// shared creates a directory that a sandbox does not hide, unlike the machine's /tmp.
func shared(t testing.TB) string {
	t.Helper()
	for _, above := range []string{"/srv", "/opt", os.Getenv("HOME")} {
		if dir, err := os.MkdirTemp(above, "pwos-test-"); err == nil {
			t.Cleanup(func() { testkit.Must(t, os.RemoveAll(dir)) })
			return dir
		}
	}
	t.Skip("there is no directory outside /tmp in which this user may write")
	return ""
}

// TestSandbox: inside its directory a program may do everything, outside it may change nothing, in either mode.
func TestSandbox(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict, ""} {
		outside, shared := shared(t), shared(t)
		file := filepath.Join(outside, "file")
		testkit.Must(t, os.WriteFile(file, []byte("mine"), 0o600))
		testkit.Must(t, os.Symlink(file, filepath.Join(shared, "way-out")))
		inside := []string{
			"write", "new", "truncate", "new", "mkdir", "folder", "rename", "folder", "symlink", "soft", "link", "new",
			"remove", "soft", "write", ".tmp/x", "rename", ".tmp/x", "read", "/etc/passwd", "write", "/dev/null", "write", "/dev/zero",
			"write", "/tmp/x", "write", "/dev/shm/x",
		}
		if got := writes(t, h, mode, shared, inside); strings.Count(got, ": ok\n") != len(inside)/2 {
			t.Errorf("%q inside: %s", mode, got)
		}
		refused := []string{
			"write", file, "truncate", file, "write", filepath.Join(outside, "new"), "mkdir", filepath.Join(outside, "sub"),
			"remove", file, "rename", file, "link", file, "symlink", filepath.Join(outside, "soft"), "adopt", file,
			"write", "way-out", "truncate", "way-out", "write", "/proc/self/root" + file, "write", "/proc/self/oom_score_adj",
		}
		if got := writes(t, h, mode, shared, refused); strings.Contains(got, ": ok\n") || strings.Count(got, "\n") != len(refused)/2 {
			t.Errorf("%q outside: %s", mode, got)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
			t.Errorf("%q: the file holds %q, %v", mode, text, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("%q: outside there are %v, %v", mode, entries, err)
		}
	}
}

// writes runs the helper in a mode.
func writes(t *testing.T, h *host.Host, mode host.Mode, dir string, what []string) string {
	t.Helper()
	c := helper(t, append([]string{"t-write"}, what...)...)
	c.Dir, c.Sandbox = dir, mode
	p := start(t, h, c)
	if p.Sandbox() != h.Level() {
		t.Errorf("level is %s, want %s", p.Sandbox(), h.Level())
	}
	return all(t, p)
}

// TestSandboxFollowsNoLink: a link in place of the working directory, or of one above it, gives no right to write to its
// target. A process that may write above the directory can create one after the check.
func TestSandboxFollowsNoLink(t *testing.T) {
	t.Parallel()
	h, base := open(t), t.TempDir()
	level(t, h, 1)
	testkit.Must(t, os.MkdirAll(filepath.Join(base, "private", "sub"), 0o700))
	testkit.Must(t, os.Symlink("private", filepath.Join(base, "link")))
	for _, dir := range []string{"link", filepath.Join("link", "sub")} {
		c := helper(t, "t-write", "write", "new")
		c.Dir = filepath.Join(base, dir)
		p, err := h.Start(t.Context(), c)
		if failed, ok := errors.AsType[*host.StartError](err); !ok || failed.Stage != "sandbox" {
			t.Errorf("%s: started %v, %v, want an error of the sandbox", dir, p, err)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "private", "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program has written outside of its directory: %v", err)
	}
}

// TestSandboxDevices: a program can open only harmless devices: a disk contains what is hidden, a terminal what is typed.
func TestSandboxDevices(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	node, work := filepath.Join(shared(t), "node"), shared(t)
	if err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Skipf("this user cannot make a device: %v", err)
	}
	if got := writes(t, h, host.SandboxDefault, work, []string{"read", node, "read", "/dev/null"}); strings.Count(got, ": ok\n") != 1 || !strings.HasSuffix(got, "read: ok\n") {
		t.Errorf("got %q", got)
	}
}

// TestSandboxHiddenStays: a program cannot rename a directory above a hidden directory or file, where the next program
// would find it.
func TestSandboxHiddenStays(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	work := shared(t)
	testkit.Must(t, os.MkdirAll(filepath.Join(work, "a", "b", "secret"), 0o700))
	c := helper(t, "t-write", "rename", "a", "rename", "a/b", "rename", "a/b/secret", "write", "a/b/new", "mkdir", "c", "rename", "c")
	c.Dir, c.Hide = work, []string{filepath.Join(work, "a", "b", "secret"), filepath.Join(work, "a", "b", "file")}
	p := start(t, h, c)
	if got := all(t, p); strings.Count(got, "rename: ok\n") != 1 || !strings.Contains(got, "write: ok\n") {
		t.Errorf("got %q", got)
	}
}

// TestSandboxReadOnly: a program cannot change a read-only working directory, and can change others.
func TestSandboxReadOnly(t *testing.T) {
	t.Parallel()
	h := open(t)
	level(t, h, 1)
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict} {
		if mode == host.SandboxStrict {
			strict(t, h)
		}
		work := shared(t)
		testkit.Must(t, os.Mkdir(filepath.Join(work, "out"), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(work, "file"), nil, 0o600))
		c := helper(t, "t-write", "write", "new", "mkdir", "dir", "rename", "file", "write", "file", "read", "file", "write", "out/new")
		c.Dir, c.ReadOnly, c.Sandbox, c.Write = work, true, mode, []string{filepath.Join(work, "out")}
		p := start(t, h, c)
		if got := all(t, p); strings.Count(got, ": ok\n") != 2 || !strings.HasSuffix(got, "read: ok\nwrite: ok\n") {
			t.Errorf("%s: got %q", mode, got)
		}
	}
}

// TestSandboxOff: without a sandbox a program can write where its user may, and the level is "off".
func TestSandboxOff(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "file")
	c := helper(t, "t-write", "write", outside)
	c.Sandbox = host.SandboxOff
	p := start(t, open(t), c)
	if got := all(t, p); got != "write: ok\n" || p.Sandbox() != "off" {
		t.Errorf("got %q at %s", got, p.Sandbox())
	}
}

// TestSandboxOlder: the rules for older kernels are valid on this one, and each refuses what it should, without namespaces.
func TestSandboxOlder(t *testing.T) {
	t.Parallel()
	h := open(t)
	level(t, h, 6)
	for abi := 1; abi <= 6; abi++ {
		outside := filepath.Join(shared(t), "file")
		testkit.Must(t, os.WriteFile(outside, []byte("mine"), 0o600))
		c := helper(t, "t-write", "write", "inside", "write", outside, "remove", outside, "read", outside, "truncate", outside)
		p, err := host.StartAt(t.Context(), h, c, host.Means{ABI: abi})
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
		got := strings.Split(all(t, p), "\n")
		for i, ok := range []bool{true, false, false, true, abi < 3} {
			if strings.HasSuffix(got[i], ": ok") != ok {
				t.Errorf("level %d: %s, want %v", abi, got[i], ok)
			}
		}
	}
}

// TestSandboxOthers: without a PID namespace, a program can neither signal nor trace the daemon or another agent, nor write into their
// memory or take their descriptors.
func TestSandboxOthers(t *testing.T) {
	t.Parallel()
	h := openShared(t)
	level(t, h, 1)
	other := start(t, h, shell(t, "read x"))
	for _, pid := range []int{os.Getpid(), other.OSPID()} {
		if got := output(t, h, helper(t, "t-trace", itoa(pid))); strings.Contains(got, ": ok") || strings.Count(got, "\n") != 4 {
			t.Errorf("trace %d: %q", pid, got)
		}
	}
	level(t, h, 6)
	for _, pid := range []int{os.Getpid(), other.OSPID()} {
		if got := output(t, h, helper(t, "t-send", itoa(pid))); got != "signal: operation not permitted\n" {
			t.Errorf("signal %d: %q", pid, got)
		}
	}
}

// outcomes returns for each line of a helper whether the operation worked.
func outcomes(text string) (list []bool) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		list = append(list, strings.HasSuffix(line, ": ok"))
	}
	return list
}

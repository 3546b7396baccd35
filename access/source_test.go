package access_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// write writes a file of mode 0600 in place, as some editors do.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// later is a clock far enough ahead for files written now to be settled.
func later() time.Time { return time.Now().Add(time.Hour) }

// TestSourceFollowsTheFile: the next Load sees a change, also one of the same size and time;
// without a change the pointer stays the same.
func TestSourceFollowsTheFile(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]func() time.Time{"settled": later, "at once": time.Now} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(privateDir(t), "authorized_keys")
			source := access.NewSource(path, clock)
			if _, err := source.Load(); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("without a file: %v", err)
			}
			one, two := vector(t, "ed25519.pub"), vector(t, "ecdsa256.pub")
			write(t, path, one)
			first := must(source.Load())(t)
			if again := must(source.Load())(t); again != first {
				t.Error("the file was read again without a change")
			}
			write(t, path, one+two)
			second := must(source.Load())(t)
			if len(second.Keys()) != 2 {
				t.Errorf("after a change there are %d keys", len(second.Keys()))
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if _, err := source.Load(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed file still admits: %v", err)
			}
			write(t, path, two)
			if keys := must(source.Load())(t); len(keys.Keys()) != 1 {
				t.Errorf("a new file has %d keys", len(keys.Keys()))
			}
		})
	}
	t.Run("of the same size and time", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(privateDir(t), "authorized_keys")
		line := vector(t, "ed25519.pub")
		write(t, path, line)
		past := time.Now().Add(-time.Hour)
		touch := func() {
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
		}
		touch()
		source := access.NewSource(path, time.Now)
		must(source.Load())(t)
		write(t, path, "#"+line[1:])
		touch()
		if keys := must(source.Load())(t); len(keys.Keys()) != 0 {
			t.Error("Load did not see the change")
		}
	})
}

// TestSourceStands: a change of the mode, the owner or the leases of a file removes no rights while
// its content is the same; a change of content under such a mode adds none.
func TestSourceStands(t *testing.T) {
	t.Parallel()
	chmod := func(t *testing.T, path string, mode fs.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, problem string
		spoil, repair func(t *testing.T, path string)
	}{
		{
			"group may write", "writable",
			func(t *testing.T, path string) { chmod(t, path, 0o620) },
			func(t *testing.T, path string) { chmod(t, path, 0o600) },
		},
		{
			"others may write", "writable",
			func(t *testing.T, path string) { chmod(t, path, 0o666) },
			func(t *testing.T, path string) { chmod(t, path, 0o600) },
		},
		{
			"others may write into the directory", "writable",
			func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o777) },
			func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o700) },
		},
		{
			"somebody else's", "belongs to user",
			func(t *testing.T, path string) {
				if os.Geteuid() != 0 {
					t.Skip("only root can change the owner of a file")
				}
				if err := os.Chown(path, 12345, -1); err != nil {
					t.Skip("root cannot change the owner of a file on this system")
				}
			},
			func(t *testing.T, path string) {
				if err := os.Chown(path, 0, -1); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(must(filepath.EvalSymlinks(privateDir(t)))(t), "authorized_keys")
			one, two := vector(t, "ed25519.pub"), vector(t, "ecdsa256.pub")
			write(t, path, one)
			source := access.NewSource(path, later)
			t.Cleanup(func() { _ = source.Close() })
			first := must(source.Load())(t)
			c.spoil(t, path)
			if keys := must(source.Load())(t); keys != first {
				t.Error("the keys have changed")
			}
			bad, ok := errors.AsType[*fault.Fault](source.Trouble())
			if !ok || !strings.Contains(bad.Message, c.problem) || bad.Fix == "" {
				t.Errorf("trouble: got %v", source.Trouble())
			}
			write(t, path, two)
			if _, err := source.Load(); !errors.As(err, &bad) || !strings.Contains(bad.Message, c.problem) {
				t.Errorf("changed: got %v", err)
			}
			write(t, path, one)
			must(source.Load())(t)
			write(t, path, two)
			c.repair(t, path)
			if keys := must(source.Load())(t); keys == first || source.Trouble() != nil {
				t.Errorf("repaired: got the keys before, trouble %v", source.Trouble())
			}
		})
	}
}

// TestSourceLeased: a lease on the file that was read, if the system grants one while it is open,
// locks no user out.
func TestSourceLeased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(privateDir(t), "authorized_keys")
	write(t, path, vector(t, "ed25519.pub"))
	source := access.NewSource(path, later)
	t.Cleanup(func() { _ = source.Close() })
	first := must(source.Load())(t)
	if err := os.Chmod(path, 0o640); err != nil { // so that Load reads it again
		t.Fatal(err)
	}
	t.Logf("lease while it is open: %v", takeLease(t, path))
	if keys := must(source.Load())(t); keys != first {
		t.Error("the keys have changed")
	}
}

// TestSourceUnreadable: if the kernel can no longer open the file, the keys already read stay
// valid.
func TestSourceUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	path := filepath.Join(privateDir(t), "authorized_keys")
	write(t, path, vector(t, "ed25519.pub"))
	source := access.NewSource(path, later)
	t.Cleanup(func() { _ = source.Close() })
	first := must(source.Load())(t)
	for _, closed := range []string{path, filepath.Dir(path)} {
		mode := must(os.Stat(closed))(t).Mode()
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		keys, err := source.Load()
		if err := os.Chmod(closed, mode); err != nil {
			t.Fatal(err)
		}
		if err != nil || keys != first {
			t.Errorf("%s closed: got %v", closed, err)
		}
	}
}

// TestSourceRefuses: a file that replaces a good one is ignored unless it is good too.
func TestSourceRefuses(t *testing.T) {
	t.Parallel()
	replace := func(t *testing.T, path string, mode fs.FileMode) {
		write(t, path+".new", vector(t, "ed25519.pub"))
		if err := errors.Join(os.Chmod(path+".new", mode), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, problem string
		spoil         func(t *testing.T, path string)
	}{
		{"group may write", "writable", func(t *testing.T, path string) { replace(t, path, 0o620) }},
		{"others may write", "writable", func(t *testing.T, path string) { replace(t, path, 0o602) }},
		{"leased", "lease", func(t *testing.T, path string) {
			replace(t, path, 0o600)
			if err := takeLease(t, path); err != nil {
				t.Skipf("this system gives no lease: %v", err)
			}
		}},
		{"a symbolic link", "symbolic link", func(t *testing.T, path string) {
			if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a directory", "not a regular file", func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a pipe without a writer", "not a regular file", func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
		{"too long", "bytes long", func(t *testing.T, path string) { write(t, path, strings.Repeat("#", 2<<20)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(must(filepath.EvalSymlinks(privateDir(t)))(t), "authorized_keys")
			write(t, path, vector(t, "ed25519.pub"))
			source := access.NewSource(path, later)
			t.Cleanup(func() { _ = source.Close() })
			must(source.Load())(t)
			c.spoil(t, path)
			_, err := source.Load()
			bad, ok := errors.AsType[*fault.Fault](err)
			if !ok || !strings.Contains(bad.Message, c.problem) || bad.Fix == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

package unixsock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestPrivateDirIsMade(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := filepath.Join(base, "a", "b", "pwos")
	var wait sync.WaitGroup
	for range 16 { // concurrent clients
		wait.Go(func() {
			if err := unixsock.EnsurePrivateDir(path); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, dir := range []string{"a", "a/b", "a/b/pwos"} {
		if mode := inode(t, filepath.Join(base, dir)).Mode(); mode != fs.ModeDir|0o700 {
			t.Errorf("%s: mode %v, want 0700", dir, mode)
		}
	}
}

// hostileLayouts make a file at path that must be refused; want is a part of the error.
var hostileLayouts = []struct {
	name string
	make func(t *testing.T, path string)
	want string
}{
	{"symbolic link to a private directory", func(t *testing.T, path string) {
		must(t, os.Mkdir(path+".real", 0o700))
		must(t, os.Symlink(path+".real", path))
	}, "symbolic link"},
	{"dangling symbolic link", func(t *testing.T, path string) { must(t, os.Symlink("nowhere", path)) }, "symbolic link"},
	{"link to itself", func(t *testing.T, path string) { must(t, os.Symlink(path, path)) }, "symbolic link"},
	{"regular file", func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o600)) }, "not a directory"},
	{"FIFO", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "not a directory"},
	{"socket", leaveStaleAt, "not a directory"},
	{"open to all", func(t *testing.T, path string) { makeDir(t, path, 0o777) }, "mode 0777"},
	{"sticky and open to all", func(t *testing.T, path string) { makeDir(t, path, 0o777|fs.ModeSticky) }, "mode 0777"},
	{"readable by group", func(t *testing.T, path string) { makeDir(t, path, 0o740) }, "mode 0740"},
	{"searchable by others", func(t *testing.T, path string) { makeDir(t, path, 0o701) }, "mode 0701"},
	{"closed to its owner", func(t *testing.T, path string) { makeDir(t, path, 0o500) }, "mode 0500"},
	{"another user's", anotherUsers, "belongs to user"},
}

func leaveStaleAt(t *testing.T, path string) { leaveStale(t, path) }

func makeDir(t *testing.T, path string, mode fs.FileMode) {
	must(t, os.Mkdir(path, 0o700))
	must(t, os.Chmod(path, mode))
}

// anotherUsers links path to a directory of another user, or makes one as root.
func anotherUsers(t *testing.T, path string) {
	if os.Geteuid() != 0 {
		must(t, os.Remove(filepath.Dir(path)))
		must(t, os.Symlink("/", filepath.Dir(path)))
		return
	}
	makeDir(t, path, 0o700)
	must(t, os.Chown(path, 12345, -1))
}

func TestHostileDirectoryIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range hostileLayouts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(filepath.Dir(privatePlaces(t).Dir), "d", "usr")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			tt.make(t, path)
			before := inode(t, path)
			for name, check := range map[string]func(string) error{
				"ensure":               unixsock.EnsurePrivateDir,
				"check":                unixsock.CheckPrivateDir,
				"ensure, with a slash": func(path string) error { return unixsock.EnsurePrivateDir(path + "/") },
				"check, with a slash":  func(path string) error { return unixsock.CheckPrivateDir(path + "/") },
			} {
				err := check(path)
				if !errors.Is(err, fault.PlaceUnsafe) {
					t.Fatalf("%s: got %v, want fault.PlaceUnsafe", name, err)
				}
				if unsafe := fault.Of(err); unsafe.Detail("path") != path || unsafe.Fix == "" || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: got %q, want one that names %s, says %q and has a fix", name, err, path, tt.want)
				}
			}
			after := inode(t, path)
			if !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("the mode is %v, was %v", before.Mode(), after.Mode())
			}
		})
	}
}

func TestPrivateDirNeedsAnAbsolutePath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", ".", "pwos", "./pwos"} {
		if !errors.Is(unixsock.EnsurePrivateDir(path), fault.PlaceUnsafe) {
			t.Errorf("%q was not refused", path)
		}
	}
}

func TestCheckDoesNotMake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pwos")
	if err := unixsock.CheckPrivateDir(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}

func TestParentIsAFile(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(parent, nil, 0o600))
	err := unixsock.EnsurePrivateDir(filepath.Join(parent, "pwos"))
	if err == nil || !strings.Contains(err.Error(), parent) {
		t.Errorf("got %v, want an error that names %s", err, parent)
	}
}

package rootfs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// place is a root, a mount and files outside of both.
type place struct {
	root, mount, outside string
	space                *uri.Space
	tree                 *rootfs.Tree
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{root: filepath.Join(dir, "root"), mount: filepath.Join(dir, "mount"), outside: filepath.Join(dir, "outside")}
	for _, d := range []string{p.root, p.mount, p.outside} {
		testkit.Must(t, os.Mkdir(d, 0o700))
	}
	write(t, filepath.Join(p.root, "a.md"), "inside")
	write(t, filepath.Join(p.mount, "m.md"), "mounted")
	write(t, filepath.Join(p.outside, "a.md"), "outside")
	var err error
	if p.space, err = uri.New(p.root, uri.Mount{Prefix: "lib", Target: p.mount}); err != nil {
		t.Fatal(err)
	}
	if p.tree, err = rootfs.Open(p.space); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

func (p *place) read(t *testing.T, name string, most int64) (rootfs.File, error) {
	t.Helper()
	at, err := p.space.Resolve(name, "")
	testkit.Must(t, err)
	return p.tree.Read(at, most)
}

// TestRead: Read returns a file's content, its digest and whether it is executable, from root and from a mount.
func TestRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, filepath.Join(p.root, "tool"), "#!/bin/sh")
	testkit.Must(t, os.Chmod(filepath.Join(p.root, "tool"), 0o700))
	for _, c := range []struct {
		name, want string
		executable bool
	}{{"a.md", "inside", false}, {"lib/m.md", "mounted", false}, {"tool", "#!/bin/sh", true}} {
		f, err := p.read(t, c.name, 100)
		if err != nil || string(f.Data) != c.want || f.Executable != c.executable {
			t.Errorf("%s: %q, %v, %v", c.name, f.Data, f.Executable, err)
		}
		sum := sha256.Sum256([]byte(c.want))
		if want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); f.Digest != want {
			t.Errorf("%s: digest %s, want %s", c.name, f.Digest, want)
		}
	}
}

// TestLimit: a file of exactly the limit is read, and a longer one is not.
func TestLimit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if f, err := p.read(t, "a.md", 6); err != nil || string(f.Data) != "inside" {
		t.Errorf("six bytes of six: %q, %v", f.Data, err)
	}
	if f, err := p.read(t, "a.md", 5); !errors.Is(err, fault.FileTooLarge) || f.Data != nil {
		t.Errorf("six bytes, at most five: %q, %v", f.Data, err)
	}
}

// TestSizelessFileIsBounded: the limit applies to a file whose size the system reports as 0.
func TestSizelessFileIsBounded(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat("/proc/self/environ"); err != nil || info.Size() != 0 {
		t.Skip("this system has no file without a size")
	}
	space, err := uri.New("/proc/self")
	testkit.Must(t, err)
	tree, err := rootfs.Open(space)
	testkit.Must(t, err)
	defer func() { _ = tree.Close() }()
	at, err := space.Resolve("status", "")
	testkit.Must(t, err)
	if _, err := tree.Read(at, 16); !errors.Is(err, fault.FileTooLarge) {
		t.Errorf("a file that says it is empty: %v", err)
	}
}

// TestRefuses: entries below root that are not read. None may block, and no error may reveal the path of root.
func TestRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	link := func(target, name string) {
		testkit.Must(t, os.Symlink(target, filepath.Join(p.root, name)))
	}
	link("a.md", "fine")
	link(filepath.Join(p.outside, "a.md"), "absolute")
	link("../outside/a.md", "relative")
	link("../outside", "folder")
	link(p.root+"/a.md", "home")
	link("nowhere", "dangling")
	link("round", "round")
	link("/dev/zero", "zero")
	link("/proc/self/environ", "environ")
	testkit.Must(t, os.Mkdir(filepath.Join(p.root, "d"), 0o700))
	testkit.Must(t, syscall.Mkfifo(filepath.Join(p.root, "pipe"), 0o600))
	if socket, err := net.Listen("unix", filepath.Join(p.root, "s")); err == nil {
		defer func() { _ = socket.Close() }()
	}
	if f, err := p.read(t, "fine", 100); err != nil || string(f.Data) != "inside" {
		t.Errorf("a link that stays below root: %q, %v", f.Data, err)
	}
	for name, want := range map[string]error{
		"absolute": fault.FileForbidden, "relative": fault.FileForbidden, "folder/a.md": fault.FileForbidden, "home": fault.FileForbidden,
		"zero": fault.FileForbidden, "environ": fault.FileForbidden, "round": fault.FileForbidden,
		"dangling": fault.FileNotFound, "b.md": fault.FileNotFound, "a.md/b": fault.FileNotFound, "lib/a.md": fault.FileNotFound,
		"d": fault.FileNotRegular, "d/": fault.FileNotRegular, "a.md/": fault.FileNotRegular, "os:///": fault.FileNotRegular,
		"pipe": fault.FileNotRegular, "https://h.example/a": fault.FileNotLocal,
	} {
		f, err := p.read(t, name, 1<<20)
		if !errors.Is(err, want) || f.Data != nil {
			t.Errorf("%s: %q, %v, want %v", name, f.Data, err, want)
		}
		if err != nil && strings.Contains(err.Error(), filepath.Dir(p.root)) {
			t.Errorf("%s: %v says where root is", name, err)
		}
	}
	if os.Getuid() != 0 {
		testkit.Must(t, os.Chmod(filepath.Join(p.root, "a.md"), 0))
		if _, err := p.read(t, "a.md", 100); !errors.Is(err, fault.FileForbidden) {
			t.Errorf("a file that is closed to us: %v", err)
		}
	}
}

// TestPlaceOfAnotherSpace: a Place with a directory that the tree does not have is refused.
func TestPlaceOfAnotherSpace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if f, err := p.tree.Read(uri.Place{URI: "os:///a.md", Dir: p.outside, Name: "a.md"}, 100); !errors.Is(err, fault.FileNotLocal) {
		t.Errorf("%q, %v", f.Data, err)
	}
	// A Place that was not resolved does not lead out either.
	f, err := p.tree.Read(uri.Place{URI: "os:///a.md", Dir: p.root, Name: "../outside/a.md"}, 100)
	if err == nil || bytes.Contains(f.Data, []byte("outside")) {
		t.Errorf("%q, %v", f.Data, err)
	}
}

// TestOpenRefuses: a missing root is an error at Open.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	space, err := uri.New(dir, uri.Mount{Prefix: "a", Target: filepath.Join(dir, "missing")})
	testkit.Must(t, err)
	if _, err := rootfs.Open(space); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened: %v", err)
	}
}

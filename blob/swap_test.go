package blob_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// resolutions returns how many references are resolved while links are swapped.
func resolutions() int {
	return testkit.Rounds(5_000, 20_000, 1_000_000)
}

// victim is a reference whose file is swapped while it is resolved.
type victim struct {
	origin string
	p      schema.BlobPointer
	found  atomic.Int64
}

// swap replaces the victim's file as fast as it can, until stop. Every few rounds it leaves the first of kinds, which may
// be read, until it was read.
func (v *victim) swap(t *testing.T, stop <-chan struct{}, kinds []func(at string) error) {
	next := v.p.Path + ".next"
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if err := kinds[i%len(kinds)](next); err != nil {
			t.Error(err)
			return
		}
		if err := os.Rename(next, v.p.Path); err != nil {
			t.Error(err)
			return
		}
		_ = os.Remove(next) // otherwise a rename onto the same file does nothing
		for before := v.found.Load(); i%(100*len(kinds)) == 0 && v.found.Load() == before; {
			select {
			case <-stop:
				return
			default:
			}
		}
	}
}

// swapFolder replaces the victim's directory with a link to another, and back, until stop.
func (v *victim) swapFolder(t *testing.T, stop <-chan struct{}, to string) {
	at := filepath.Dir(v.p.Path)
	aside := at + ".aside"
	for {
		select {
		case <-stop:
			return
		default:
		}
		for _, step := range []func() error{
			func() error { return os.Rename(at, aside) },
			func() error { return os.Symlink(to, at) },
			func() error { return os.Remove(at) },
			func() error { return os.Rename(aside, at) },
		} {
			if err := step(); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// While other threads replace a client's file, a blob of the store and a whole directory with forbidden links, every
// reference leads only to its own file.
func TestSwappedLinks(t *testing.T) {
	t.Parallel()
	const text, secret = "mine", "secret"
	base := t.TempDir()
	dir := filepath.Join(base, "blobs")
	s := open(t, blob.Options{Dir: dir})
	blob.Impatient(s)
	outside := filepath.Join(base, "outside")
	testkit.Must(t, os.WriteFile(outside, []byte(secret), 0o600))
	theirs := put(t, s, other, secret).Pointer
	theirFolder := filepath.Base(filepath.Dir(theirs.Path))

	link := func(to string) func(string) error { return func(at string) error { return os.Symlink(to, at) } }
	hard := func(to string) func(string) error { return func(at string) error { return os.Link(to, at) } }
	wrong := []func(string) error{
		link(outside), hard(outside), link("../../outside"), hard(outside), link("../" + theirFolder + "/" + filepath.Base(theirs.Path)),
		hard(theirs.Path), link("."), hard(outside), link("/proc/self/environ"),
	}

	written := &victim{origin: third, p: put(t, s, third, text).Pointer}
	aside := filepath.Join(base, "aside")
	testkit.Must(t, os.Link(written.p.Path, aside))
	dropped := &victim{origin: third, p: file(filepath.Join(filepath.Dir(written.p.Path), "dropped"))}
	testkit.Must(t, os.WriteFile(dropped.p.Path, []byte(text), 0o600))
	const fourth = "https://fourth.local/"
	moved := &victim{origin: fourth, p: file(filepath.Join(filepath.Dir(put(t, s, fourth, text).Pointer.Path), "x"))}
	testkit.Must(t, os.WriteFile(moved.p.Path, []byte(text), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, theirFolder, "x"), []byte(secret), 0o600))

	stop := make(chan struct{})
	var swappers sync.WaitGroup
	swappers.Go(func() { written.swap(t, stop, append([]func(string) error{hard(aside)}, wrong...)) })
	swappers.Go(func() {
		dropped.swap(t, stop, append([]func(string) error{func(at string) error { return os.WriteFile(at, []byte(text), 0o600) }}, wrong...))
	})
	swappers.Go(func() { moved.swapFolder(t, stop, theirFolder) })

	victims := []*victim{written, dropped, moved}
	refused := 0
	// The test continues until each file was read, since otherwise it would show nothing. The test's time limit bounds it.
	for i := 0; i < resolutions() || written.found.Load() == 0 || dropped.found.Load() == 0 || moved.found.Load() == 0; i++ {
		v := victims[i%len(victims)]
		switch got, err := read(t, s, v.origin, v.p); {
		case err != nil:
			refused++
		case got == text:
			v.found.Add(1)
		default:
			t.Errorf("escaped to %q", got)
		}
	}
	close(stop)
	swappers.Wait()
	t.Logf("found %d, %d and %d times, refused %d times", written.found.Load(), dropped.found.Load(), moved.found.Load(), refused)
	if refused == 0 {
		t.Error("nothing was swapped")
	}
}

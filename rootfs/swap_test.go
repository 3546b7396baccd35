package rootfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// resolutions returns how many names are resolved while a thread swaps files.
func resolutions() int {
	return testkit.Rounds(5_000, 20_000, 1_000_000)
}

// TestNothingEscapes resolves and reads names while other threads replace links, directories and files below root with ones
// that lead out, and move directories out and back. Only files inside are read.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	in := filepath.Join(p.root, "in")
	for _, d := range []string{in, filepath.Join(p.root, "deep"), filepath.Join(p.root, "deep", "er")} {
		testkit.Must(t, os.Mkdir(d, 0o700))
	}
	write(t, filepath.Join(in, "a.md"), "inside")
	// A link with steps up, in a directory that is moved: outside, the steps would lead to a file that must not be read.
	testkit.Must(t, os.Symlink("../../in/a.md", filepath.Join(p.root, "deep", "er", "up")))
	testkit.Must(t, os.Mkdir(filepath.Join(p.outside, "in"), 0o700))
	write(t, filepath.Join(p.outside, "in", "a.md"), "outside")
	testkit.Must(t, os.Mkdir(filepath.Join(p.outside, "x"), 0o700))

	var stop atomic.Bool
	var swaps atomic.Int64
	var swapper sync.WaitGroup
	swapper.Go(func() {
		put := func(name string, make func(path string) error) {
			next := filepath.Join(p.root, ".next")
			if make(next) == nil {
				_ = os.Rename(next, filepath.Join(p.root, name))
			}
		}
		link := func(target string) func(string) error {
			return func(path string) error { return os.Symlink(target, path) }
		}
		for !stop.Load() {
			put("folder", link("../outside"))
			put("file", link("../outside/a.md"))
			put("absolute", link(p.outside))
			_ = os.Rename(filepath.Join(p.root, "deep", "er"), filepath.Join(p.outside, "x", "er"))
			put("folder", link("in"))
			put("file", func(path string) error { return os.WriteFile(path, []byte("inside"), 0o600) })
			put("absolute", link("in"))
			_ = os.Rename(filepath.Join(p.outside, "x", "er"), filepath.Join(p.root, "deep", "er"))
			swaps.Add(1)
		}
	})
	defer swapper.Wait()
	defer stop.Store(true)

	names := []string{"folder/a.md", "file", "absolute/a.md", "deep/er/up"}
	read, refused := 0, 0
	for i := range resolutions() {
		name := names[i%len(names)]
		f, err := p.read(t, name, 100)
		switch {
		case err == nil && string(f.Data) == "inside":
			read++
		case err == nil:
			t.Fatalf("%s: read %q after %d resolutions", name, f.Data, i)
		case errors.Is(err, fault.FileForbidden), errors.Is(err, fault.FileNotFound):
			refused++
		default:
			t.Fatalf("%s: %v", name, err)
		}
	}
	t.Logf("%d read, %d refused, %d swaps", read, refused, swaps.Load())
	if read == 0 || refused == 0 {
		t.Errorf("%d read, %d refused: nothing was swapped under a reader", read, refused)
	}
}

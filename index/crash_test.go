package index_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestCrashOfSave: after a crash at any point of Save the old snapshot is loaded, and Open removes the incomplete one.
func TestCrashOfSave(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	old, fresh := state("old", 12, 100_000), state("new", 90, 10_000)
	s := open(t, path, index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(old...)))
	crashed := func(want [][]byte, at uint64) {
		t.Helper()
		copied := newPath(t)
		testkit.Must(t, os.CopyFS(copied, os.DirFS(path)))
		s := open(t, copied, index.Options{})
		got, err := load(s, "memory")
		testkit.Must(t, err)
		if in, _ := of(t, s, "memory"); in != head(at) || !equal(got, want) {
			t.Fatalf("a start has %d chunks of entry %d", len(got), in.Seq)
		}
		if names := files(t, copied); slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".tmp") }) {
			t.Fatalf("files %v", names)
		}
		wantUsable(t, s)
		testkit.Must(t, s.Close())
	}
	parts := 0
	testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, func(put func([]byte) error) error {
		for i, chunk := range fresh {
			if err := put(chunk); err != nil {
				return err
			}
			if i%9 == 8 {
				crashed(old, 1)
				parts++
			}
		}
		return nil
	}))
	crashed(fresh, 2)
	if parts != 10 {
		t.Fatalf("only %d crashes", parts)
	}
}

// TestTornSnapshot: a partly written snapshot is not loaded.
func TestTornSnapshot(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, puts(state("new", 90, 10_000)...)))
	file := filepath.Join(path, "memory.snapshot")
	whole, err := os.ReadFile(file)
	testkit.Must(t, err)
	torn := [][]byte{slices.Clone(whole), append(slices.Clone(whole), 0)}
	clear(torn[0][len(whole)/2 : len(whole)/2+4096]) // a page that was not written
	for i := range 24 {
		torn = append(torn, whole[:len(whole)*i/24])
	}
	for n := range 100 {
		torn = append(torn, whole[:len(whole)-n-1], whole[:n])
	}
	for _, data := range torn {
		write(t, file, data)
		got, err := load(s, "memory")
		wantError(t, err, index.ErrDamaged)
		if len(got) > 0 {
			t.Fatalf("%d chunks were restored of %d bytes", len(got), len(data))
		}
	}
	wantUsable(t, s)
}

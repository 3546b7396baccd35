package blob_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// A store whose directory was removed creates it again: earlier blobs are lost, and later ones are stored. It does so when
// a blob is written, when one is read from a directory that a program has created again, and at a sweep.
func TestRemovedDirectory(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(t *testing.T, s *blob.Store, dir string){
		"write": func(*testing.T, *blob.Store, string) {},
		"read": func(t *testing.T, s *blob.Store, dir string) {
			testkit.Must(t, os.Mkdir(dir, 0o700))
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o600))
			if text, err := read(t, s, own, file(filepath.Join(dir, "mine"))); err != nil || text != "mine" {
				t.Errorf("read %q, %v", text, err)
			}
		},
		"sweep": func(t *testing.T, s *blob.Store, _ string) {
			sweep(t, s, 0, 0)
			if u := s.Usage(); u != (blob.Usage{}) {
				t.Errorf("%+v of nothing", u)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "blobs")
			s := open(t, blob.Options{Dir: dir})
			gone := put(t, s, own, "gone").Pointer
			testkit.Must(t, os.RemoveAll(dir))
			use(t, s, dir)
			var all sync.WaitGroup
			for range 8 {
				for _, origin := range []string{own, other} {
					all.Go(func() {
						b, err := s.Put(0, origin, false, strings.NewReader("kept"))
						if err != nil {
							t.Error(err)
							return
						}
						if text, err := read(t, s, origin, b.Pointer); err != nil || text != "kept" {
							t.Errorf("read %q, %v", text, err)
						}
					})
				}
			}
			all.Wait()
			_, err := s.Open(own, gone)
			want(t, err, fault.BlobNotFound)
			if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("the directory is %v, %v", info, err)
			}
		})
	}
}

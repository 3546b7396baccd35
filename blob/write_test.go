package blob_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A blob is a private file with the written content, and a reference that schema accepts unchanged.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	for _, origin := range []string{own, other, "", "../../x"} {
		w, err := s.Create(0, origin)
		testkit.Must(t, err)
		for _, part := range []string{"a", "", "bc"} {
			_, err = io.WriteString(w, part)
			testkit.Must(t, err)
		}
		for _, name := range tree(t, dir) {
			if _, err := s.Open(origin, file(filepath.Join(dir, name))); !strings.Contains(name, "o-") || strings.Contains(name, "/") {
				want(t, err, fault.BlobNotFound)
			}
		}
		b, err := w.Commit()
		testkit.Must(t, err)
		w.Abort()
		if b.Size != 3 || b.Digest != sha256.Sum256([]byte("abc")) {
			t.Errorf("%+v", b)
		}
		again, fault := schema.DecodeBlobPointer(b.Pointer.Append(nil), "bodyRef")
		if fault != nil || again != b.Pointer || !strings.HasPrefix(b.Pointer.Path, dir+"/") {
			t.Errorf("%+v became %+v, %v", b.Pointer, again, fault)
		}
		if text, err := read(t, s, origin, b.Pointer); err != nil || text != "abc" {
			t.Errorf("%q, %v", text, err)
		}
		info, err := os.Lstat(b.Pointer.Path)
		testkit.Must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		testkit.Must(t, os.Remove(b.Pointer.Path))
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// The same content twice gives two blobs, so that callers do not learn what others have.
func TestNamesSayNothing(t *testing.T) {
	t.Parallel()
	s := open(t, blob.Options{})
	if a, b := put(t, s, own, "x"), put(t, s, own, "x"); a.Pointer == b.Pointer {
		t.Error("one reference for two blobs")
	}
}

// An unfinished blob leaves no file and uses no quota.
func TestAbort(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir, FileBytes: 10})
	empty := func() {
		t.Helper()
		if u, left := s.Usage(), tree(t, dir); u != (blob.Usage{}) || len(left) > 0 {
			t.Errorf("%+v, %q", u, left)
		}
	}
	w, err := s.Create(0, own)
	testkit.Must(t, err)
	_, err = io.WriteString(w, "abc")
	testkit.Must(t, err)
	w.Abort()
	w.Abort()
	empty()
	if _, err := w.Write(nil); err == nil {
		t.Error("wrote to what was aborted")
	}
	if _, err := w.Commit(); err == nil {
		t.Error("committed what was aborted")
	}

	torn := errors.New("torn")
	if _, err := s.Put(0, own, false, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(torn))); !errors.Is(err, torn) {
		t.Errorf("%v, want %v", err, torn)
	}
	empty()

	w, err = s.Create(0, own)
	testkit.Must(t, err)
	_, err = io.WriteString(w, strings.Repeat("a", 10))
	testkit.Must(t, err)
	_, err = io.WriteString(w, "b")
	want(t, err, fault.BlobNoRoom, "at most 10 bytes")
	_, err = io.WriteString(w, "")
	want(t, err, fault.BlobNoRoom)
	_, err = w.Commit()
	want(t, err, fault.BlobNoRoom)
	empty()
	put(t, s, own, strings.Repeat("a", 10))
}

// The quota can be used to its last byte and its last file, and not exceeded by concurrent writers.
func TestQuota(t *testing.T) {
	t.Parallel()
	const bytes, files, writers = 10_000, 50, 16
	s := open(t, blob.Options{DirBytes: bytes, DirFiles: files})
	var most, committed atomic.Int64
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 100 {
				b, err := s.Put(0, []string{own, other}[i%2], false, iotest.OneByteReader(strings.NewReader(strings.Repeat("a", r.IntN(400)))))
				if err == nil {
					committed.Add(b.Size)
				} else {
					want(t, err, fault.BlobNoRoom, "raise the limit")
				}
				u := s.Usage()
				if u.Bytes > bytes || u.Files > files {
					t.Errorf("the usage %+v exceeds the quota", u)
				}
				most.Store(max(most.Load(), u.Bytes))
			}
		})
	}
	all.Wait()
	if u := s.Usage(); u.Bytes != committed.Load() || u.Bytes > bytes || u.Files > files {
		t.Errorf("%+v, %d bytes were committed", u, committed.Load())
	}
	left := bytes - s.Usage().Bytes
	if s.Usage().Files < files {
		_, err := s.Put(0, own, false, strings.NewReader(strings.Repeat("a", int(left)+1)))
		want(t, err, fault.BlobNoRoom)
		put(t, s, own, strings.Repeat("a", int(left)))
		if u := s.Usage(); u.Bytes != bytes {
			t.Errorf("%+v, want all", u)
		}
	}
}

// Exactly as many concurrent writers succeed as the quota has room for.
func TestQuotaExact(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits blob.Options
		size   int
	}{
		"files": {blob.Options{DirFiles: 7}, 3},
		"bytes": {blob.Options{DirBytes: 7 * 1000}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tc.limits)
			var fit atomic.Int64
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					_, err := s.Put(0, own, false, strings.NewReader(strings.Repeat("a", tc.size)))
					if err == nil {
						fit.Add(1)
						return
					}
					want(t, err, fault.BlobNoRoom)
				})
			}
			all.Wait()
			if u := s.Usage(); fit.Load() != 7 || u.Files != 7 || u.Bytes != int64(7*tc.size) {
				t.Errorf("%d writers succeeded, usage %+v", fit.Load(), u)
			}
		})
	}
}

// A closed store returns an error. Open readers and writers can be closed.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := open(t, blob.Options{})
	b := put(t, s, own, "abc")
	r, err := s.Open(own, b.Pointer)
	testkit.Must(t, err)
	w, err := s.Create(0, other)
	testkit.Must(t, err)
	testkit.Must(t, s.Close())
	testkit.Must(t, s.Close())
	_, err = w.Commit()
	want(t, err, fault.KernelStopping)
	if text, err := io.ReadAll(r); err != nil || string(text) != "abc" {
		t.Errorf("%q, %v", text, err)
	}
	testkit.Must(t, r.Close())
	_, err = s.Create(0, own)
	want(t, err, fault.KernelStopping)
	_, err = s.Open(own, b.Pointer)
	want(t, err, fault.KernelStopping)
	_, err = s.OpenFor(0, own, b.Pointer)
	want(t, err, fault.KernelStopping)
	_, err = s.Sweep()
	want(t, err, fault.KernelStopping)
}

// A directory that others can read or change is refused.
func TestUnsafeDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	real := filepath.Join(base, "real")
	testkit.Must(t, os.Mkdir(real, 0o700))
	link := filepath.Join(base, "link")
	testkit.Must(t, os.Symlink(real, link))
	wide := filepath.Join(base, "wide")
	testkit.Must(t, os.Mkdir(wide, 0o700))
	testkit.Must(t, os.Chmod(wide, 0o750))
	plain := filepath.Join(base, "plain")
	testkit.Must(t, os.WriteFile(plain, nil, 0o600))
	for _, dir := range []string{link, wide, plain, filepath.Join(base, "none", "blobs"), "blobs", ""} {
		if s, err := blob.New(blob.Options{Dir: dir}); err == nil {
			t.Errorf("the directory %q was accepted", dir)
			_ = s.Close()
		}
	}
}

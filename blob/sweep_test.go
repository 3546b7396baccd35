package blob_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sweep checks what a sweep removes.
func sweep(t *testing.T, s *blob.Store, files int, bytes int64) {
	t.Helper()
	removed, err := s.Sweep()
	testkit.Must(t, err)
	if removed != (blob.Usage{Files: files, Bytes: bytes}) {
		t.Errorf("removed %+v, want %d files, %d bytes", removed, files, bytes)
	}
}

// A blob is removed when it is older than the time to live and has no holder, and not before.
func TestSweep(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, blob.Options{TTL: time.Hour, Now: c.now})
	first, held, opened := put(t, s, own, "first").Pointer, put(t, s, other, "held").Pointer, put(t, s, own, "opened").Pointer
	holder, err := s.Open(other, held)
	testkit.Must(t, err)
	r, err := s.Open(own, opened)
	testkit.Must(t, err)
	c.advance(30 * time.Minute)
	later := put(t, s, other, "later").Pointer
	c.advance(30 * time.Minute)
	sweep(t, s, 0, 0)
	if u := s.Usage(); u != (blob.Usage{Files: 4, Bytes: 20}) {
		t.Errorf("%+v", u)
	}

	c.advance(1)
	sweep(t, s, 1, 5)
	_, err = s.Open(own, first)
	want(t, err, fault.BlobNotFound)
	c.advance(30 * time.Minute)
	sweep(t, s, 1, 5)
	_, err = s.Open(other, later)
	want(t, err, fault.BlobNotFound)
	if u := s.Usage(); u != (blob.Usage{Files: 2, Bytes: 10}) {
		t.Errorf("%+v", u)
	}

	// The age of a blob counts from its last use.
	testkit.Must(t, holder.Close())
	testkit.Must(t, holder.Close())
	testkit.Must(t, r.Close())
	c.advance(time.Hour)
	sweep(t, s, 0, 0)
	if text, err := read(t, s, other, held); err != nil || text != "held" {
		t.Errorf("%q, %v", text, err)
	}
	c.advance(1)
	sweep(t, s, 1, 6)
	c.advance(time.Hour)
	sweep(t, s, 1, 4)
	if u := s.Usage(); u != (blob.Usage{}) {
		t.Errorf("%+v", u)
	}
}

// A file that is being written is not removed, however long that takes.
func TestSweepUnfinished(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, blob.Options{TTL: time.Hour, Now: c.now})
	for _, origin := range []string{own, other} {
		w, err := s.Create(0, origin)
		testkit.Must(t, err)
		_, err = w.Write([]byte("abc"))
		testkit.Must(t, err)
		c.advance(24 * time.Hour)
		sweep(t, s, 0, 0)
		b, err := w.Commit()
		testkit.Must(t, err)
		if text, err := read(t, s, origin, b.Pointer); err != nil || text != "abc" {
			t.Errorf("%q, %v", text, err)
		}
		c.advance(24 * time.Hour)
		sweep(t, s, 1, 3)
	}
}

// Two readers of a blob are counted: the first close does not release it.
func TestOpenTwice(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, blob.Options{TTL: time.Hour, Now: c.now})
	p := put(t, s, own, "abc").Pointer
	one, err := s.Open(own, p)
	testkit.Must(t, err)
	two, err := s.Open(own, p)
	testkit.Must(t, err)
	testkit.Must(t, one.Close())
	testkit.Must(t, one.Close())
	c.advance(2 * time.Hour)
	sweep(t, s, 0, 0)
	testkit.Must(t, two.Close())
	c.advance(2 * time.Hour)
	sweep(t, s, 1, 3)
}

// Files of other programs count from the next sweep on, and are removed like others; the quota of files that they remove is
// released.
func TestSweepLearns(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir, TTL: time.Hour, Now: c.now, DirBytes: 20})
	kept := put(t, s, other, "mine").Pointer
	dropped := filepath.Join(dir, "dropped")
	testkit.Must(t, os.WriteFile(dropped, make([]byte, 16), 0o600))
	sweep(t, s, 0, 0)
	_, err := s.Put(0, own, false, strings.NewReader("a"))
	want(t, err, fault.BlobNoRoom)
	testkit.Must(t, os.Truncate(dropped, 15))
	sweep(t, s, 0, 0)
	gone := put(t, s, own, "a").Pointer
	testkit.Must(t, os.Remove(gone.Path))
	testkit.Must(t, os.Remove(kept.Path))
	sweep(t, s, 0, 0)
	if u := s.Usage(); u != (blob.Usage{Files: 1, Bytes: 15}) {
		t.Errorf("%+v", u)
	}
	c.advance(2 * time.Hour)
	sweep(t, s, 1, 15)
}

// Other entries than blobs are removed when they are old, never followed, and a directory of another origin is never
// removed.
func TestSweepStrangers(t *testing.T) {
	t.Parallel()
	c := newClock()
	base := t.TempDir()
	dir := filepath.Join(base, "blobs")
	s := open(t, blob.Options{Dir: dir, TTL: time.Hour, Now: c.now})
	outside := filepath.Join(base, "outside")
	testkit.Must(t, os.Mkdir(outside, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(outside, "x"), nil, 0o600))
	testkit.Must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	testkit.Must(t, os.Symlink(outside, filepath.Join(dir, "o-"+strings.Repeat("0", 32))))
	testkit.Must(t, os.MkdirAll(filepath.Join(dir, "somebody's"), 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "somebody's", "x"), nil, 0o600))
	c.advance(2 * time.Hour)
	sweep(t, s, 2, 0)
	if diff := cmp.Diff([]string{"somebody's", "somebody's/x"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x"}, tree(t, outside)); diff != "" {
		t.Error(diff)
	}
}

// A start removes unfinished files of any age, and old blobs; the rest can be read as before.
func TestNewStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, blob.Options{Dir: dir})
	fresh := map[string]schema.BlobPointer{own: put(t, s, own, "fresh").Pointer, other: put(t, s, other, "fresh").Pointer}
	stale := map[string]schema.BlobPointer{own: put(t, s, own, "stale").Pointer, third: put(t, s, third, "stale").Pointer}
	old := time.Now().Add(-2 * time.Hour)
	for _, p := range stale {
		testkit.Must(t, os.Chtimes(p.Path, old, old))
	}
	// The files of a killed process: unfinished ones, one of them new.
	for _, name := range []string{".new-AAAA", filepath.Base(filepath.Dir(fresh[other].Path)) + "/.new-BBBB"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
	}
	ahead := filepath.Join(dir, "ahead")
	testkit.Must(t, os.WriteFile(ahead, []byte("ahead"), 0o600))
	testkit.Must(t, os.Chtimes(ahead, time.Now().Add(1000*time.Hour), time.Now().Add(1000*time.Hour)))
	testkit.Must(t, s.Close())

	c := newClock()
	s = open(t, blob.Options{Dir: dir, TTL: time.Hour, Now: c.now})
	for origin, p := range fresh {
		if text, err := read(t, s, origin, p); err != nil || text != "fresh" {
			t.Errorf("%q, %v", text, err)
		}
	}
	for origin, p := range stale {
		_, err := s.Open(origin, p)
		want(t, err, fault.BlobNotFound)
	}
	left := []string{"ahead"}
	for _, p := range fresh {
		left = append(left, p.Path[len(dir)+1:])
	}
	left = append(left, filepath.Base(filepath.Dir(fresh[other].Path)))
	slices.Sort(left)
	if diff := cmp.Diff(left, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	if u := s.Usage(); u != (blob.Usage{Files: 3, Bytes: 15}) {
		t.Errorf("%+v", u)
	}
	// A file with a time in the future does not stay permanently.
	c.advance(2 * time.Hour)
	sweep(t, s, 3, 15)
}

// A sweep during other operations removes nothing that is new, being written or in use, and the usage stays correct.
func TestSweepMeanwhile(t *testing.T) {
	t.Parallel()
	s := open(t, blob.Options{})
	stop := make(chan struct{})
	var sweeper, all sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if removed, err := s.Sweep(); err != nil || removed != (blob.Usage{}) {
					t.Errorf("removed %+v, %v", removed, err)
				}
			}
		}
	})
	for _, origin := range []string{own, own, other, third} {
		all.Go(func() {
			for range 50 {
				b, err := s.Put(0, origin, false, strings.NewReader("abc"))
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := read(t, s, origin, b.Pointer); err != nil || text != "abc" {
					t.Errorf("%q, %v", text, err)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	sweeper.Wait()
	if u := s.Usage(); u != (blob.Usage{Files: 200, Bytes: 600}) {
		t.Errorf("%+v", u)
	}
}

package blob_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// Origins of the tests. own is the kernel's.
const (
	own   = "https://own.local/"
	other = "https://other.local/"
	third = "https://third.local/"
)

// clock is a clock that the test advances.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// open opens a store in a directory of the test, and closes it at the end.
func open(t testing.TB, o blob.Options) *blob.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "blobs")
	}
	o.Origin = own
	s, err := blob.New(o)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

func put(t testing.TB, s *blob.Store, origin, text string) blob.Blob {
	t.Helper()
	b, err := s.Put(0, origin, false, strings.NewReader(text))
	testkit.Must(t, err)
	return b
}

// read returns the content that a reference names, or the error of opening it.
func read(t testing.TB, s *blob.Store, origin string, p schema.BlobPointer) (string, error) {
	t.Helper()
	r, err := s.Open(origin, p)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	testkit.Must(t, errors.Join(err, r.Close(), r.Close()))
	if int64(len(text)) != r.Size() {
		t.Errorf("%d bytes of %d", len(text), r.Size())
	}
	return string(text), nil
}

// want fails the test unless err has the id or kind, and its text contains says.
func want(t testing.TB, err error, id error, says ...string) {
	t.Helper()
	if !errors.Is(err, id) {
		t.Fatalf("error %v, want %v", err, id)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// tree lists the files below a directory.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	testkit.Must(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && name != dir {
			all = append(all, name[len(dir)+1:])
		}
		return err
	}))
	return all
}

func file(p string) schema.BlobPointer { return schema.BlobPointer{Scheme: "file", Path: p} }

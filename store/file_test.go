package store_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/store"
)

// Only the three files are ever there, nobody else may read them, and Close leaves one.
func TestFiles(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, func(put func([]byte) error) error {
		if err := puts(state("big", 100, 100_000)...)(put); err != nil {
			return err
		}
		if names := beside(t, path); !slices.Equal(names, []string{"store.db", "store.db-shm", "store.db-wal"}) {
			return fmt.Errorf("files %v", names)
		}
		return nil
	}))
	fill(t, s, journalOf(2*store.RunEntries))
	for _, name := range beside(t, path) {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		testkit.Must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	testkit.Must(t, s.Close())
	if names := beside(t, path); !slices.Equal(names, []string{"store.db"}) {
		t.Fatalf("Close leaves %v", names)
	}
	wantError(t, s.DropIndex(ctx()), store.ErrClosed)
	_, err := s.Snapshots(ctx())
	wantError(t, err, store.ErrClosed)
	testkit.Must(t, s.Close())
}

// A file that others may read is closed to them; a log without its file is not taken for one of the new file.
func TestOpenTidies(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, nil)
	testkit.Must(t, os.Chmod(path, 0o644))
	write(t, path+"-wal", []byte("left over"))
	var told troubles
	s := open(t, path, store.Options{Trouble: told.tell})
	told.want(t, nil)
	info, err := os.Stat(path)
	testkit.Must(t, err)
	if info.Mode() != 0o600 {
		t.Fatalf("mode %v", info.Mode())
	}
	wantUsable(t, s)
}

// Paths are paths, whatever a URI would make of them.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b%20c", "ü&_pragma=x"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, path, store.Options{})
		wantUsable(t, s)
		testkit.Must(t, s.Close())
		if names := beside(t, path); !slices.Equal(names, []string{name}) {
			t.Errorf("%s: files %v", name, names)
		}
	}
}

// Where nothing can be written Open says so, and leaves nothing open.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, path string) string{
		"no directory":        func(t *testing.T, path string) string { return filepath.Join(path, "store.db") },
		"path is a directory": func(t *testing.T, path string) string { testkit.Must(t, os.Mkdir(path, 0o700)); return path },
		"path is a link":      func(t *testing.T, path string) string { testkit.Must(t, os.Symlink(path+".other", path)); return path },
		"log cannot be made": func(t *testing.T, path string) string {
			testkit.Must(t, os.MkdirAll(path+"-wal/x", 0o700))
			return path
		},
		"directory is read-only": func(t *testing.T, path string) string {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			dir := filepath.Dir(path)
			testkit.Must(t, os.Chmod(dir, 0o500))
			t.Cleanup(func() { testkit.Must(t, os.Chmod(dir, 0o700)) })
			return path
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(prepare(t, newPath(t)), store.Options{})
			if err == nil {
				t.Fatal(s.Close())
			}
		})
	}
}

// One file has one Store, in this process and among processes; it is free again when that is closed.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	_, err := store.Open(path, store.Options{})
	wantError(t, err, store.ErrLocked)
	if said, end := other(t, path); said != "locked" {
		t.Fatalf("another process says %q while this one has the store", said)
	} else {
		end()
	}
	wantUsable(t, s) // the refused one has harmed nothing
	testkit.Must(t, s.Close())

	said, end := other(t, path)
	if said != "open" {
		t.Fatalf("another process says %q", said)
	}
	_, err = store.Open(path, store.Options{})
	wantError(t, err, store.ErrLocked)
	end()
	wantUsable(t, open(t, path, store.Options{}))
}

// TestClosedStoreIsFree: nobody is kept from a store that was closed by a child that this process is starting.
func TestClosedStoreIsFree(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	testkit.Forked(t, path)
	testkit.Must(t, s.Close())
	wantUsable(t, open(t, path, store.Options{}))
}

// other starts a second process with the store and returns the first line that it says; end ends it.
func other(t *testing.T, path string) (said string, end func()) {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), otherProcess+"="+path)
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	return strings.TrimSpace(line), func() {
		testkit.Must(t, in.Close())
		_, _ = io.Copy(io.Discard, out)
		testkit.Must(t, cmd.Wait())
	}
}

// Without room a Save and a commit fail, what was there stays, questions are answered, and it goes on when there is room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	tags := journalOf(2 * store.RunEntries)
	for i := range tags {
		tags[i].Correlation = fmt.Sprint("c-", i)
	}
	s := open(t, newPath(t), store.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	fill(t, s, tags[:store.RunEntries])
	pages, err := s.Pages()
	testkit.Must(t, err)
	testkit.Must(t, s.LimitPages(pages))

	if err := s.Save(ctx(), "memory", head(2), 2, puts(state("new", 30, 100_000)...)); err == nil {
		t.Fatal("the file grew past its limit: the test tests nothing")
	}
	x, err := s.Indexer(ctx())
	testkit.Must(t, err)
	for i := store.RunEntries; i < len(tags); i++ {
		testkit.Must(t, x.Add(&tags[i]))
	}
	if err := x.Commit(ctx()); err == nil {
		t.Fatal("the index grew past its limit: the test tests nothing")
	}
	wantOld(t, s)
	found, err := s.Ranges(ctx(), store.Filter{}, 1, 10)
	testkit.Must(t, err)
	if !slices.Equal(found, []store.Range{{1, store.RunEntries}, {store.RunEntries + 1, store.OpenEnd}}) {
		t.Fatalf("ranges %v", found)
	}

	testkit.Must(t, s.LimitPages(0))
	testkit.Must(t, x.Commit(ctx()))
	testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, puts(state("new", 30, 100_000)...)))
	got, err := load(s, "memory")
	testkit.Must(t, err)
	if !equal(got, state("new", 30, 100_000)) {
		t.Fatal("the Save with room was lost")
	}
}

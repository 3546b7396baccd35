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
	check(t, s.Save(ctx(), "memory", head(1), 1, func(put func([]byte) error) error {
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
		check(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	check(t, s.Close())
	if names := beside(t, path); !slices.Equal(names, []string{"store.db"}) {
		t.Fatalf("Close leaves %v", names)
	}
	wantError(t, s.DropIndex(ctx()), store.ErrClosed)
	_, err := s.Snapshots(ctx())
	wantError(t, err, store.ErrClosed)
	check(t, s.Close())
}

// A file that others may read is closed to them; a log without its file is not taken for one of the new file.
func TestOpenTidies(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, nil)
	check(t, os.Chmod(path, 0o644))
	write(t, path+"-wal", []byte("left over"))
	var told troubles
	s := open(t, path, store.Options{Trouble: told.tell})
	told.want(t, nil)
	info, err := os.Stat(path)
	check(t, err)
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
		check(t, s.Close())
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
		"path is a directory": func(t *testing.T, path string) string { check(t, os.Mkdir(path, 0o700)); return path },
		"path is a link":      func(t *testing.T, path string) string { check(t, os.Symlink(path+".other", path)); return path },
		"log cannot be made":  func(t *testing.T, path string) string { check(t, os.MkdirAll(path+"-wal/x", 0o700)); return path },
		"directory is read-only": func(t *testing.T, path string) string {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			dir := filepath.Dir(path)
			check(t, os.Chmod(dir, 0o500))
			t.Cleanup(func() { check(t, os.Chmod(dir, 0o700)) })
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
	check(t, s.Close())

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
	check(t, s.Close())
	wantUsable(t, open(t, path, store.Options{}))
}

// other starts a second process with the store and returns the first line that it says; end ends it.
func other(t *testing.T, path string) (said string, end func()) {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), otherProcess+"="+path)
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	return strings.TrimSpace(line), func() {
		check(t, in.Close())
		_, _ = io.Copy(io.Discard, out)
		check(t, cmd.Wait())
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
	check(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	fill(t, s, tags[:store.RunEntries])
	pages, err := s.Pages()
	check(t, err)
	check(t, s.LimitPages(pages))

	if err := s.Save(ctx(), "memory", head(2), 2, puts(state("new", 30, 100_000)...)); err == nil {
		t.Fatal("the file grew past its limit: the test tests nothing")
	}
	x, err := s.Indexer(ctx())
	check(t, err)
	for i := store.RunEntries; i < len(tags); i++ {
		check(t, x.Add(&tags[i]))
	}
	if err := x.Commit(ctx()); err == nil {
		t.Fatal("the index grew past its limit: the test tests nothing")
	}
	wantOld(t, s)
	found, err := s.Ranges(ctx(), store.Filter{}, 1, 10)
	check(t, err)
	if !slices.Equal(found, []store.Range{{1, store.RunEntries}, {store.RunEntries + 1, store.OpenEnd}}) {
		t.Fatalf("ranges %v", found)
	}

	check(t, s.LimitPages(0))
	check(t, x.Commit(ctx()))
	check(t, s.Save(ctx(), "memory", head(2), 2, puts(state("new", 30, 100_000)...)))
	got, err := load(s, "memory")
	check(t, err)
	if !equal(got, state("new", 30, 100_000)) {
		t.Fatal("the Save with room was lost")
	}
}

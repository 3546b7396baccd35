//go:build unix

package index_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
)

// databases returns the names of the files of an open index.
func databases() []string {
	return []string{"index.db", "index.db-shm", "index.db-wal", "search.db", "search.db-shm", "search.db-wal"}
}

// TestFiles: the directory has the files of the package comment, only the user may read them, and Close removes the
// logs.
func TestFiles(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, index.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, func(put func([]byte) error) error {
		if err := puts(state("big", 100, 100_000)...)(put); err != nil {
			return err
		}
		names := files(t, path)
		if len(names) != 7 || !strings.HasSuffix(names[0], ".tmp") || !slices.Equal(names[1:], databases()) {
			return fmt.Errorf("files %v", names)
		}
		return nil
	}))
	fill(t, s, journalOf(2*run))
	for _, name := range files(t, path) {
		info, err := os.Stat(filepath.Join(path, name))
		testkit.Must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	testkit.Must(t, s.Close())
	if names := files(t, path); !slices.Equal(names, []string{"index.db", "memory.snapshot", "search.db"}) {
		t.Fatalf("after Close: files %v", names)
	}
	wantError(t, s.Drop(), index.ErrClosed)
	_, err := load(s, "memory")
	wantError(t, err, index.ErrClosed)
	wantError(t, s.Save(ctx(), "memory", head(1), 1, puts()), index.ErrClosed)
	testkit.Must(t, s.Close())
}

// TestOpenTidies: Open makes a file private, and removes a log without its database.
func TestOpenTidies(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	testkit.Must(t, os.CopyFS(path, os.DirFS(filled(t))))
	file := filepath.Join(path, "index.db")
	write(t, file, nil)
	testkit.Must(t, os.Chmod(file, 0o644))
	write(t, file+"-wal", []byte("left over"))
	var told troubles
	s := open(t, path, index.Options{Trouble: told.add})
	told.want(t, nil)
	info, err := os.Stat(file)
	testkit.Must(t, err)
	if info.Mode() != 0o600 {
		t.Fatalf("mode %v", info.Mode())
	}
	wantUsable(t, s)
}

// TestOddPaths: a path is not interpreted as a URI.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "a?mode=memory", "a#b%20c", "ü&_pragma=x"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, path, index.Options{})
		wantUsable(t, s)
		testkit.Must(t, s.Close())
		if names := files(t, filepath.Dir(path)); !slices.Equal(names, []string{name}) {
			t.Errorf("%s: files %v", name, names)
		}
	}
}

// TestOpenRefuses: Open returns an error if it cannot write, and leaves nothing open.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, path string) string{
		"no directory":   func(t *testing.T, path string) string { return filepath.Join(path, "index") },
		"path is a file": func(t *testing.T, path string) string { write(t, path, nil); return path },
		"index is a directory": func(t *testing.T, path string) string {
			testkit.Must(t, os.MkdirAll(filepath.Join(path, "index.db"), 0o700))
			return path
		},
		"index is a link": func(t *testing.T, path string) string {
			testkit.Must(t, os.Mkdir(path, 0o700))
			testkit.Must(t, os.Symlink(path+".other", filepath.Join(path, "index.db")))
			return path
		},
		"log cannot be made": func(t *testing.T, path string) string {
			testkit.Must(t, os.MkdirAll(filepath.Join(path, "index.db-wal", "x"), 0o700))
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
			s, err := index.Open(prepare(t, newPath(t)), index.Options{})
			if err == nil {
				t.Fatal(s.Close())
			}
		})
	}
}

// limitedProcess is the environment variable with the index that a process with a limit of 2 MiB for a file fills.
const limitedProcess = "PWOS_INDEX_TEST_LIMIT"

// overfill writes more than the limit allows, and checks the index. It returns the exit code.
func overfill(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	const room = 2 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := index.Open(path, index.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Save(ctx(), "memory", head(2), 2, puts(state("new", 60, 100_000)...)); err == nil {
		fmt.Println("a Save of more than the limit succeeded")
		return 1
	}
	tags := journalOf(1_000_000)
	for i := range tags {
		tags[i].Correlation = fmt.Sprint("c-", i)
	}
	end := 0
	for ; err == nil && end < len(tags)-index.BlockEntries; end += index.BlockEntries {
		err = s.Add(ctx(), tags[end:end+index.BlockEntries])
	}
	mark, markErr := s.Watermark(ctx())
	if err == nil || markErr != nil || mark.Seq != uint64(end-index.BlockEntries) {
		fmt.Println("the watermark is not the last added block:", err, markErr, mark.Seq, end)
		return 1
	}
	pid := int64(3)
	found, err := s.Ranges(ctx(), index.Filter{PID: &pid}, 1, 1)
	if err != nil || len(found) != 1 || found[0] != (index.Range{First: 2817, Last: 4096}) {
		fmt.Println("ranges", found, err)
		return 1
	}
	if err := s.Drop(); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Add(ctx(), tags[:index.BlockEntries]); err != nil {
		fmt.Println("after Drop:", err)
		return 1
	}
	got, err := load(s, "memory")
	if err != nil || !equal(got, state("old", 3, 5)) {
		fmt.Println("the old snapshot is gone:", len(got), err)
		return 1
	}
	if err := s.Save(ctx(), "memory", head(3), 3, puts(state("small", 3, 5)...)); err != nil {
		fmt.Println("a small snapshot:", err)
		return 1
	}
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestNoRoom: if the operating system refuses a write, that Save or Add fails; earlier data can be read, and a later
// write may succeed.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), limitedProcess+"="+path)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, strings.TrimSpace(string(said)))
	}
	s := open(t, path, index.Options{})
	got, err := load(s, "memory")
	testkit.Must(t, err)
	if !equal(got, state("small", 3, 5)) {
		t.Fatalf("%d chunks", len(got))
	}
	if names := files(t, path); !slices.Equal(names, slices.Insert(databases(), 3, "memory.snapshot")) {
		t.Fatalf("files %v", names)
	}
}

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/snapshot"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// place is a store and a working directory.
type place struct {
	*testing.T
	store *snapshot.Store
	state string
	dir   string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	top, err := filepath.EvalSymlinks(testkit.Dir(t))
	testkit.Must(t, err)
	p := &place{T: t, state: filepath.Join(top, "state"), dir: filepath.Join(top, "work")}
	p.store, err = snapshot.Open(p.state)
	testkit.Must(t, err)
	testkit.Must(t, os.Mkdir(p.dir, 0o755))
	return p
}

func (p *place) write(name, text string) {
	p.Helper()
	at := filepath.Join(p.dir, name)
	testkit.Must(p.T, os.MkdirAll(filepath.Dir(at), 0o755))
	testkit.Must(p.T, os.WriteFile(at, []byte(text), 0o644))
}

func (p *place) take(what snapshot.What) *snapshot.Snapshot {
	p.Helper()
	if what.Limit == 0 {
		what.Limit = snapshot.DefaultLimit
	}
	made, err := p.store.Take(context.Background(), p.dir, what)
	testkit.Must(p.T, err)
	return made
}

// compare prepares a restore for an agent that ended at a time.
func (p *place) compare(id string, end time.Time) *snapshot.Restore {
	p.Helper()
	r, err := p.store.Restore(context.Background(), id, end)
	testkit.Must(p.T, err)
	return r
}

// restore restores from a copy, and returns the id of the copy of what was replaced.
func (p *place) restore(id string) string {
	p.Helper()
	r := p.compare(id, later())
	kept, err := r.Keep(context.Background(), 1, snapshot.DefaultLimit)
	testkit.Must(p.T, err)
	testkit.Must(p.T, r.Apply(context.Background(), kept))
	testkit.Must(p.T, r.Close())
	return kept
}

// later returns a time after all changes, as the end of the agent.
func later() time.Time { return time.Now().Add(time.Hour) }

// look describes a tree: a line for each entry, with everything that a restore restores.
func look(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, content := strings.TrimPrefix(path, dir), ""
		switch mode := info.Mode(); {
		case mode.IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%q", text)
		case mode&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		case !mode.IsDir():
			return nil
		}
		lines = append(lines, fmt.Sprintf("%q %v %v %s", rel, info.Mode(), info.ModTime().UnixNano(), content))
		return nil
	})
	testkit.Must(t, err)
	return strings.Join(lines, "\n")
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// scribble changes a tree at random, as an agent may.
func scribble(t *testing.T, r *rand.Rand, dir string, steps int) {
	t.Helper()
	names := []string{"a", "b", "c", "a/a", "a/b", "b/a", "b/c", "a/b/c", "c/a/b", "\xff", "b/é"}
	for range steps {
		at := filepath.Join(dir, names[r.IntN(len(names))])
		var err error
		switch r.IntN(9) {
		case 0:
			err = os.RemoveAll(at)
		case 1:
			err = os.MkdirAll(at, 0o755)
		case 2:
			err = os.Symlink(names[r.IntN(len(names))], at)
		case 3:
			err = os.Chmod(at, fs.FileMode(0o700|r.IntN(0o100)))
		case 4:
			err = os.Chtimes(at, time.Time{}, time.Unix(r.Int64N(1<<30), r.Int64N(1e9)))
		case 5:
			err = os.Rename(at, filepath.Join(dir, names[r.IntN(len(names))]))
		case 6:
			err = unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)
		default:
			err = os.WriteFile(at, []byte(strings.Repeat("x", r.IntN(4))+string(rune('a'+r.IntN(3)))), 0o644)
		}
		// Operations that are not possible are ignored.
		if err != nil && !slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrExist, unix.ENOTDIR, unix.EISDIR, unix.ENOTEMPTY, unix.EINVAL, unix.ELOOP, unix.ENXIO, unix.EILSEQ}, func(usual error) bool { return errors.Is(err, usual) }) {
			t.Fatal(err)
		}
	}
}

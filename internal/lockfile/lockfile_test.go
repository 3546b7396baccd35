package lockfile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/testkit"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A lock excludes all other open files, its holder is known, and it is free after its release, although a child that was
// forked meanwhile still has the file open.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testkit.Dir(t), "lock")
	first, second := open(t, path), open(t, path)
	testkit.Must(t, lockfile.Try(first))
	if err := lockfile.Try(second); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("second lock: got %v, want ErrHeld", err)
	}
	if err := lockfile.TryShared(second); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("shared lock: got %v, want ErrHeld", err)
	}
	if pid := lockfile.Holder(second); pid != os.Getpid() && pid != 0 {
		t.Errorf("holder: got %d, want %d", pid, os.Getpid())
	}
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(over)
	if err := lockfile.Wait(ctx, second); !errors.Is(err, lockfile.ErrHeld) || !errors.Is(err, over) {
		t.Errorf("wait: got %v, want ErrHeld and the cause", err)
	}
	waited := make(chan error)
	go func() { waited <- lockfile.Wait(context.Background(), second) }()
	testkit.Forked(t, path)
	testkit.Must(t, lockfile.Release(first))
	testkit.Must(t, <-waited)
	if err := lockfile.Release(second); err != nil {
		t.Error(err)
	}
	if err := lockfile.Release(second); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second release: got %v, want os.ErrClosed", err)
	}
}

// Take waits for a lock that is soon released, and not for others.
func TestTake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testkit.Dir(t), "lock")
	first, second := open(t, path), open(t, path)
	synctest.Test(t, func(t *testing.T) {
		testkit.Must(t, lockfile.Try(first))
		if err := lockfile.Take(second); !errors.Is(err, lockfile.ErrHeld) {
			t.Errorf("held lock: got %v, want ErrHeld", err)
		}
		taken := make(chan error)
		go func() { taken <- lockfile.Take(second) }()
		synctest.Wait() // until it has found the lock held
		testkit.Must(t, lockfile.Release(first))
		testkit.Must(t, <-taken)
	})
	testkit.Must(t, lockfile.Release(second))
}

// No other package locks files: a child that was just forked could keep the lock of another package after its release.
func TestOnlyHere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "internal", "lockfile") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), ".Flock(") {
			t.Errorf("%s calls flock itself", path)
		}
		return err
	})
	testkit.Must(t, err)
}

package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

func TestOSFS(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	opt := journal.Options{Dir: dir, SegmentBytes: 1000, Signer: newHostKey(1)}
	l, _ := open(t, opt)
	if _, _, err := journal.Open(opt); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("second open: got %v, want ErrLocked", err)
	}
	grow(t, l, 10)
	testkit.Must(t, l.Close())
	l, rec := open(t, opt)
	if rec.Head.Seq != 10 || rec.Segments != 4 || rec.Vouched != 10 {
		t.Errorf("got %+v", rec)
	}
	testkit.Must(t, l.Close())
	report := verify(t, nil, dir, journal.VerifyOptions{})
	if !report.OK() || report.Entries != 10 {
		t.Errorf("got %+v", report)
	}
	// Other users cannot read the journal.
	modes := map[string]fs.FileMode{dir: fs.ModeDir | 0o700}
	for _, name := range []string{"00000000000000000001.ndjson", "00000000000000000010.ndjson", "checkpoints", "head"} {
		modes[filepath.Join(dir, name)] = 0o600
	}
	for path, want := range modes {
		st, err := os.Stat(path)
		if err != nil || st.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", path, st, err, want)
		}
	}
}

// A start waits for the lock of a process that was just killed.
func TestOSFSLockOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var fsys journal.OSFS
	killed, err := fsys.Lock(dir)
	testkit.Must(t, err)
	synctest.Test(t, func(t *testing.T) {
		locked := make(chan error)
		go func() {
			next, err := fsys.Lock(dir)
			if err == nil {
				err = next.Close()
			}
			locked <- err
		}()
		synctest.Wait() // until it has found the lock held
		testkit.Must(t, killed.Close())
		testkit.Must(t, <-locked)
	})
}

func TestOSFSErrors(t *testing.T) {
	t.Parallel()
	var fsys journal.OSFS
	none := filepath.Join(t.TempDir(), "none")
	errOf := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"readdir": errOf(fsys.ReadDir(none)), "open": errOf(fsys.Open(none)), "create": errOf(fsys.Create(none + "/x")),
		"syncdir": fsys.SyncDir(none), "lock": errOf(fsys.Lock(none)), "mkdir": fsys.Mkdir(none + "/x"),
		"verify": errOf(journal.Verify(t.Context(), nil, none, journal.VerifyOptions{})),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want ErrNotExist", name, err)
		}
	}
}

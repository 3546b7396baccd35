package journal_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// checkpoints reads the checkpoints on a disk, and fails if one is invalid.
func checkpoints(t *testing.T, disk *faultfs.Disk) []journal.Checkpoint {
	t.Helper()
	var all []journal.Checkpoint
	for text := range strings.Lines(string(disk.Image()[dir+"/checkpoints"])) {
		cp, err := journal.ParseCheckpoint([]byte(strings.TrimSuffix(text, "\n")))
		testkit.Must(t, err)
		testkit.Must(t, cp.Verify())
		all = append(all, cp)
	}
	return all
}

func seqs(all []journal.Checkpoint) string {
	var s []uint64
	for _, cp := range all {
		s = append(s, cp.Seq)
	}
	return fmt.Sprint(s)
}

// Checkpoints are written when they are due, at a rotation, at Close, and at the start after a crash; never twice for one
// entry.
func TestCheckpointsAreWritten(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	key := newHostKey(1)
	opt := journal.Options{Dir: dir, FS: disk, Signer: key, CheckpointEvery: 6, Now: clock}
	l, _ := open(t, opt)
	for range 6 {
		grow(t, l, 3)
		if due := l.CheckpointDue(); due != (l.Synced()%6 == 0) {
			t.Errorf("after %d entries: due %v", l.Synced(), due)
		}
		testkit.Must(t, l.Checkpoint())
	}
	if got := seqs(checkpoints(t, disk)); got != "[6 12 18]" {
		t.Errorf("while running: got %v", got)
	}
	grow(t, l, 1)
	testkit.Must(t, l.Close())
	opt.SegmentBytes = 1
	l, _ = open(t, opt)
	grow(t, l, 6)
	if got := seqs(checkpoints(t, disk)); got != "[6 12 18 19 22]" {
		t.Errorf("after close and rotation: got %v", got)
	}
	disk.Kill()
	l, _ = open(t, opt)
	testkit.Must(t, l.Close())
	all := checkpoints(t, disk)
	if got := seqs(all); got != "[6 12 18 19 22 25]" {
		t.Errorf("after a crash: got %v", got)
	}
	last := all[len(all)-1]
	if last.Key != key.Public() || last.Time != clock().UnixMilli() {
		t.Errorf("got %+v", last)
	}
	text := fmt.Sprintf("pwos-checkpoint@v1\n25\n%s\n%d\n", last.Hash, last.Time)
	if !ed25519.Verify(key.key.Public().(ed25519.PublicKey), []byte(text), last.Sig) {
		t.Error("the signature is not over the documented text")
	}
}

// A checkpoint never covers an entry that is not durable, and never delays an entry.
func TestCheckpointOfSyncedEntriesOnly(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: newHostKey(1), CheckpointEvery: 1})
	l.Append(entry(1, 0))
	testkit.Must(t, l.Flush())
	testkit.Must(t, l.Checkpoint())
	if n := len(checkpoints(t, disk)); n != 0 || l.CheckpointDue() {
		t.Errorf("%d checkpoints before the entry was synced", n)
	}
}

func TestCheckpointTrouble(t *testing.T) {
	t.Parallel()
	var told []error
	key := newHostKey(1)
	fsys := faultfs.NewFailing(faultfs.NewDisk(), faultfs.Fault{})
	l, _ := open(t, journal.Options{
		Dir: dir, FS: fsys, Signer: key, CheckpointEvery: 3,
		Trouble: func(err error) { told = append(told, err) },
	})
	want := func(what string, n int, due bool) {
		t.Helper()
		if len(told) != n || l.CheckpointDue() != due {
			t.Errorf("%s: %v were reported, due %v", what, told, l.CheckpointDue())
		}
	}
	grow(t, l, 3)
	key.err = errors.New("no key")
	if err := l.Checkpoint(); !errors.Is(err, key.err) {
		t.Errorf("got %v", err)
	}
	want("after a failed signature", 1, false)
	grow(t, l, 3)
	key.err = nil
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.ENOSPC, Short: true})
	if err := l.Checkpoint(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrStopped) {
		t.Errorf("got %v", err)
	}
	want("after a failed write", 2, false)
	if left := fsys.FS.(*faultfs.Disk).Image()[checkpointsPath]; len(left) > 0 {
		t.Errorf("a failed write has left %q", left)
	}
	grow(t, l, 3)
	want("three entries later", 2, true)
	testkit.Must(t, l.Checkpoint())
	if got := seqs(checkpoints(t, fsys.FS.(*faultfs.Disk))); got != "[9]" {
		t.Errorf("got checkpoints %v", got)
	}
	grow(t, l, 3)
	key.key = newHostKey(2).key // signs with a key that it does not show
	if err := l.Checkpoint(); err == nil {
		t.Error("a wrong signature was written")
	}
	grow(t, l, 3)
	fsys.Arm(faultfs.Fault{N: 2, Err: syscall.EIO})
	key.key = newHostKey(1).key
	if err := l.Checkpoint(); !errors.Is(err, journal.ErrStopped) {
		t.Errorf("failed fsync: got %v, want ErrStopped", err)
	}
}

func TestParseCheckpointIsStrict(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: newHostKey(1)})
	grow(t, l, 1)
	testkit.Must(t, l.Close())
	cp := checkpoints(t, disk)[0]
	good := string(cp.AppendLine(nil))
	for name, change := range map[string][2]string{
		"space":        {`,"time"`, `, "time"`},
		"seq zero":     {`"seq":1`, `"seq":0`},
		"after":        {`"}`, `"}x`},
		"sig":          {`==`, `=`},
		"sig in lines": {`==`, `==\u000a`},
	} {
		if _, err := journal.ParseCheckpoint([]byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	for name, change := range map[string][2]string{
		"seq":        {`"seq":1`, `"seq":2`},
		"hash":       {`"hash":"`, `"hash":"00`},
		"time":       {`"time":1`, `"time":2`},
		"key":        {newHostKey(1).Public(), newHostKey(2).Public()},
		"key type":   {`ssh-ed25519 `, `ssh-rsa `},
		"key cut":    {newHostKey(1).Public(), `ssh-ed25519 AAAA`},
		"key no b64": {newHostKey(1).Public(), `ssh-ed25519 !`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: nothing changed", name)
		}
		if cp, err := journal.ParseCheckpoint([]byte(text)); err == nil && cp.Verify() == nil {
			t.Errorf("%s: verified", name)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	cp := journal.Checkpoint{Head: journal.Head{Seq: 7}, Time: 5}
	cp.Key, cp.Sig = "ssh-ed25519 AAAA", []byte("sig")
	f.Add(cp.AppendLine(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		cp, err := journal.ParseCheckpoint(b)
		if err == nil && string(cp.AppendLine(nil)) != string(b) {
			t.Fatalf("read  %s\nwrote %s", b, cp.AppendLine(nil))
		}
	})
}

// An owner that syncs only for checkpoints syncs once for each, also with a slow signer, and starts one at a time.
func TestSyncsForCheckpoints(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	key := &slowKey{hostKey: newHostKey(1), asked: make(chan struct{}), answer: make(chan struct{})}
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: key, CheckpointEvery: 4})
	var signers sync.WaitGroup
	syncs, begun, answered := 0, 0, 0
	step := func() {
		for range 3 { // like an owner that checks again after each sync
			if l.CheckpointWaits() {
				syncs++
				_, err := l.Sync()
				testkit.Must(t, err)
			}
			if l.CheckpointDue() {
				begun++
				signers.Go(func() {
					if err := l.Checkpoint(); err != nil {
						t.Error(err)
					}
				})
				if begun == answered+1 { // another one would wait for this one
					<-key.asked
				}
			}
		}
	}
	answer := func() {
		answered++
		key.answer <- struct{}{}
		signers.Wait()
	}
	want := func(what string, s, b int) {
		t.Helper()
		if syncs != s || begun != b {
			t.Fatalf("%s: %d syncs and %d checkpoints begun, want %d and %d", what, syncs, begun, s, b)
		}
	}
	for seq := uint64(1); seq <= 20; seq++ {
		l.Append(entry(seq, 0))
		testkit.Must(t, l.Flush())
		step()
	}
	want("while entry 4 is signed", 2, 1)
	answer()
	step()
	want("while entry 8 is signed, which stands for all", 3, 2)
	answer()
	step()
	want("after both", 3, 3)
	answer()
	if got := seqs(checkpoints(t, disk)); got != "[4 8 20]" {
		t.Errorf("got checkpoints %s", got)
	}
	testkit.Must(t, l.Close())
}

// A HeadSigner's checkpoints are those of its signer, whose first signature it verifies.
func TestHeadSigner(t *testing.T) {
	t.Parallel()
	key, other := newHostKey(1), newHostKey(2)
	heads := testkit.Value(journal.NewHeadSigner(key))(t)
	head := journal.Head{Seq: 7, Hash: journal.Hash{1}}
	got := testkit.Value(heads.Sign(head, time.UnixMilli(5)))(t)
	testkit.Must(t, got.Verify())
	if got.Head != head || got.Time != 5 || got.Key != heads.Key() {
		t.Errorf("signed %+v", got)
	}
	if _, err := journal.NewHeadSigner(mixedKey{key, other}); err == nil {
		t.Error("a key that signs with another one was accepted")
	}
	key.err = errors.New("no key")
	if _, err := heads.Sign(head, time.UnixMilli(5)); !errors.Is(err, key.err) {
		t.Errorf("a signer that fails: %v", err)
	}
}

// mixedKey has the public key of one key, and signs with another.
type mixedKey struct{ shows, signs journal.Signer }

func (k mixedKey) Public() string                   { return k.shows.Public() }
func (k mixedKey) Sign(data []byte) ([]byte, error) { return k.signs.Sign(data) }

package delta_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/delta"
)

// commit adds deltas of about a kilobyte each to an agent's memory.
func (s *shell) commit(agent string, n int) {
	s.Helper()
	for i := range n {
		s.tick++
		data := fmt.Sprintf(`{"agent_id":%q,"changes":{"k%d":"%s"}}`, agent, i%10, strings.Repeat("v", 1000))
		call := s.request(0, home, "Syscall.CommitDelta", data)
		result, err := s.domain.Decide(call)
		if err != nil {
			s.Fatal(err)
		}
		s.journal.Apply(s.domain, call, result.Data)
	}
}

func TestSnapshotInChunks(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(0, "Syscall.Checkpoint", `{}`, `{"total_deltas":0,"checkpoint_id":1}`)
	for _, agent := range []string{"ada", "bob", "cleo"} {
		s.commit(agent, 900)
	}
	all := s.chunks()
	if len(all) != 3 {
		t.Errorf("%d chunks", len(all))
	}
	restored := s.restored()
	if !bytes.Equal(s.snapshot(), restored.snapshot()) {
		t.Error("the restored state is another one")
	}
	for i, chunk := range all {
		if len(chunk) > 1<<20+2000 {
			t.Errorf("chunk %d has %d bytes", i, len(chunk))
		}
		if err := restored.domain.Restore(chunk); !errors.Is(err, delta.ErrSnapshot) {
			t.Errorf("chunk %d given twice: %v", i, err)
		}
	}
}

// TestSnapshotIsOfItsMoment writes a snapshot while the state changes; the race detector checks it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.commit("ada", 300)
	s.commit("bob", 300)
	want := s.snapshot()
	write, writeLater := s.domain.Snapshot(), s.domain.Snapshot()
	var got, later bytes.Buffer
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := write(func(chunk []byte) error {
			got.Write(chunk)
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	for dropped := 200; dropped > 0; dropped -= 40 { // ada holds 300, of the ticks up to 300
		s.want(0, "Syscall.Rollback", `{"to_tick":100,"agent_id":"ada"}`, fmt.Sprintf(`{"rolled_back_to":100,"dropped":%d}`, dropped))
		s.commit("ada", dropped-40)
	}
	writing.Wait()
	if err := writeLater(func(chunk []byte) error {
		later.Write(chunk)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(want, got.Bytes()) || !bytes.Equal(want, later.Bytes()) {
		t.Error("the snapshot has later changes")
	}
}

func TestSnapshotEndsWithTheWriter(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := newShell(t)
	s.commit("ada", 3000)
	for at := range 3 {
		n := 0
		err := s.domain.Snapshot()(func([]byte) error {
			if n++; n > at {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || n != at+1 {
			t.Errorf("write %d fails: %v after %d writes", at, err, n)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	const one = "\x3f\xf0\x00\x00\x00\x00\x00\x00" // the amount 1
	ledger := "l" + text("\x01oab") + "\x05"
	entry := func(tick, violation, changes, amounts string) string {
		return "d" + tick + text(violation+text(changes)+amounts)
	}
	good := ledger + entry("\x01", "\x00", "{}", "\x00\x00") + entry("\x02", "\x01", `{"a":1}`, "\x01\x01a"+one+"\x00")
	for name, chunk := range map[string]string{
		"unknown tag":           "x",
		"no checkpoints":        "c\x00",
		"checkpoints twice":     "c\x01c\x01",
		"checkpoints later":     ledger + "c\x01",
		"too many checkpoints":  "c\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"delta of nobody":       entry("\x01", "\x00", "{}", "\x00\x00"),
		"ledger twice":          ledger + ledger,
		"ledger out of order":   ledger + "l" + text("\x01oaa") + "\x05",
		"ledger without origin": "l" + text("\x05") + "\x05",
		"ledger never written":  "l" + text("\x01oab") + "\x00",
		"more than committed":   strings.Replace(good, "ab\x05", "ab\x01", 1),
		"ticks going back":      good + entry("\x01", "\x00", "{}", "\x00\x00"),
		"empty body":            ledger + "d\x01" + text(""),
		"violation neither":     ledger + entry("\x01", "\x02", "{}", "\x00\x00"),
		"changes no object":     ledger + entry("\x01", "\x00", "[]", "\x00\x00"),
		"changes no JSON":       ledger + entry("\x01", "\x00", "{{", "\x00\x00"),
		"changes repeated":      ledger + entry("\x01", "\x00", `{"a":1,"a":2}`, "\x00\x00"),
		"amount cut":            ledger + entry("\x01", "\x00", "{}", "\x01\x01a"),
		"amount infinite":       ledger + entry("\x01", "\x00", "{}", "\x01\x01a\x7f\xf0\x00\x00\x00\x00\x00\x00\x00"),
		"amount no number":      ledger + entry("\x01", "\x00", "{}", "\x00\x01\x01a\x7f\xf0\x00\x00\x00\x00\x00\x01"),
		"body too long":         ledger + entry("\x01", "\x00", "{}", "\x00\x00\x00"),
	} {
		s := newShell(t)
		if err := s.domain.Restore([]byte(chunk)); !errors.Is(err, delta.ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newShell(t)
	testkit.Must(t, s.domain.Restore([]byte(good)))
	if got := string(s.snapshot()); got != good {
		t.Errorf("%q comes back as %q", good, got)
	}
	for cut := 1; cut < len(good); cut++ {
		if err := newShell(t).domain.Restore([]byte(good[:cut])); err == nil && good[cut] != 'd' {
			t.Errorf("cut after %d bytes: no error", cut)
		}
	}
}

// text writes a text of less than 128 bytes as a snapshot does.
func text(s string) string { return string(rune(len(s))) + s }

// FuzzRestore checks that a chunk is refused or gives a state that snapshots to itself.
func FuzzRestore(f *testing.F) {
	s := newShell(f)
	s.want(1, "Syscall.CommitDelta", `{"changes":{"a":[1]},"governance_violation":true}`, `{"agent_id":"ada","delta_seq":1}`)
	s.want(3, "Syscall.CommitDelta", `{"relationship_changes":{"ada":0.5}}`, `{"agent_id":"bob","delta_seq":1}`)
	f.Add(s.snapshot())
	f.Add([]byte("c\x01l" + text("\x01oab") + "\x05d\x01" + text("\x00"+text("{}")+"\x01\x01a\x3f\xf0\x00\x00\x00\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		s := newShell(t)
		if err := s.domain.Restore(chunk); err != nil {
			return
		}
		once := s.snapshot()
		if again := s.restored().snapshot(); !bytes.Equal(once, again) {
			t.Errorf("%q restores to %q", once, again)
		}
	})
}

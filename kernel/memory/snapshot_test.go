package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
)

func chunks(t *testing.T, d *memory.Domain) [][]byte {
	t.Helper()
	var all [][]byte
	if err := d.Snapshot()(func(chunk []byte) error {
		all = append(all, chunk)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSnapshotInChunks(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	for i := range 3000 {
		store(t, d, fmt.Sprintf("k/%05d", i), `"`+strings.Repeat("v", 1000)+`"`)
	}
	call := request(t, 1, other, "Memory.Set", `{"key":"x","value":1}`)
	domaintest.Apply(d, call, call.Data)
	all := chunks(t, d)
	if len(all) != 3 {
		t.Errorf("%d chunks", len(all))
	}
	restored := newDomain(t, nil)
	for i, chunk := range all {
		if len(chunk) > 1<<20+2000 {
			t.Errorf("chunk %d has %d bytes", i, len(chunk))
		}
		testkit.Must(t, restored.Restore(chunk))
	}
	if !bytes.Equal(domaintest.Snapshot(t, d), domaintest.Snapshot(t, restored)) {
		t.Error("the restored state is another one")
	}
	for i := range all { // chunks are not kept
		clear(all[i])
	}
	if !bytes.Equal(domaintest.Snapshot(t, d), domaintest.Snapshot(t, restored)) {
		t.Error("the restored state aliases its chunk")
	}
	if err := restored.Restore(chunks(t, d)[1]); !errors.Is(err, memory.ErrSnapshot) {
		t.Errorf("a chunk given twice: %v", err)
	}
}

// TestSnapshotIsOfItsMoment writes a snapshot while the state changes; the race detector checks it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	for i := range 2000 {
		store(t, d, fmt.Sprintf("k/%d", i), "1")
	}
	want := domaintest.Snapshot(t, d)
	write, writeLater := d.Snapshot(), d.Snapshot()
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
	for i := range 2000 {
		store(t, d, fmt.Sprintf("k/%d", i), "22")
		store(t, d, fmt.Sprintf("new/%d", i), "3")
		if i%2 == 0 {
			if _, err := run(t, d, 1, home, "Memory.Delete", fmt.Sprintf(`{"key":"k/%d"}`, i)); err != nil {
				t.Fatal(err)
			}
		}
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
	d := newDomain(t, nil)
	for i := range 3000 {
		store(t, d, fmt.Sprintf("k/%d", i), `"`+strings.Repeat("v", 1000)+`"`)
	}
	for at := range 3 {
		n := 0
		err := d.Snapshot()(func([]byte) error {
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
	d := newDomain(t, nil)
	store(t, d, "a", "1")
	store(t, d, "b", "2")
	good := chunks(t, d)[0]
	for name, chunk := range map[string][]byte{
		"no origin":      {0},
		"origin missing": []byte("\x01b\x011"),
		"out of order":   []byte("\x00\x01o\x01b\x011\x01a\x012"),
		"repeated":       []byte("\x00\x01o\x01a\x011\x01a\x012"),
		"begun again":    []byte("\x00\x01o\x01a\x011\x00\x01o\x01a\x012"),
		"no value":       []byte("\x00\x01o\x01a\x00"),
		"in proc":        []byte("\x00\x01o\x06proc/x\x011"),
		"huge length":    []byte("\x00\x01o\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a"),
		"endless number": bytes.Repeat([]byte{0xff}, 12),
	} {
		if err := newDomain(t, nil).Restore(chunk); !errors.Is(err, memory.ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := 1; cut < len(good); cut++ {
		whole := cut == 2+len(home) || cut == 2+len(home)+4 // before the first entry, or the second
		if err := newDomain(t, nil).Restore(good[:cut]); !whole && !errors.Is(err, memory.ErrSnapshot) {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
}

// FuzzRestore checks that a chunk is refused or gives a state that snapshots and restores to itself.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x00\x01o\x01a\x011\x01b\x012"))
	f.Add([]byte("\x00\x01o\x01b\x011\x00\x01n\x01a\x012\x00\x01o\x01c\x013"))
	f.Add([]byte("\x00\x01o\x01b\x011\x01a\x012"))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		d := newDomain(t, nil)
		if err := d.Restore(chunk); err != nil {
			return
		}
		once := domaintest.Snapshot(t, d)
		again := newDomain(t, nil)
		testkit.Must(t, again.Restore(once))
		if !bytes.Equal(once, domaintest.Snapshot(t, again)) {
			t.Errorf("%q restores to %q", once, domaintest.Snapshot(t, again))
		}
	})
}

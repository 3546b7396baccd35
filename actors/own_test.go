package actors_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestOwnCall shows that a call of the kernel's goes the way of any: it is decided, journaled, applied, and answered when
// that is on disk.
func TestOwnCall(t *testing.T) {
	t.Parallel()
	books := newLibrary()
	s := startWith(t, books.domains())
	data, err := s.kernel.Do("", "Memory.Set", &schema.MemorySetInput{Key: "k", Value: schema.Value("1")})
	if err != nil || string(data) != `1` {
		t.Errorf("got %s, %v", data, err)
	}
	entries := s.entries()
	if len(entries) != 1 || !strings.HasPrefix(entries[0].conn, "kernel-") || entries[0].PID != 0 || entries[0].origin != "https://test.local/" {
		t.Errorf("journaled: %+v", entries)
	}
	if _, err := s.kernel.Do("https://elsewhere.example/", "Memory.Set", &schema.MemorySetInput{Key: "k", Value: schema.Value("2")}); err != nil {
		t.Error(err)
	}
	if entries := s.entries(); len(entries) != 2 || entries[1].origin != "https://elsewhere.example/" || entries[1].conn == entries[0].conn {
		t.Errorf("journaled: %+v", entries)
	}
}

// TestOwnCallThatFails shows that the kernel gets the error that a client would.
func TestOwnCallThatFails(t *testing.T) {
	t.Parallel()
	books := newLibrary()
	books[schema.Memory].decide = func(*kernel.Call, []string) (kernel.Result, bool, error) {
		return kernel.Result{}, true, schema.Errorf(schema.QuotaExceeded, "enough")
	}
	s := startWith(t, books.domains())
	_, err := s.kernel.Do("", "Memory.Set", &schema.MemorySetInput{Key: "k", Value: schema.Value("1")})
	if shown, ok := errors.AsType[*schema.Error](err); !ok || shown.Kind != schema.QuotaExceeded || shown.Message != "enough" {
		t.Errorf("got %v", err)
	}
	if _, err := s.kernel.Do("", "No.Such", &schema.ListInput{}); err == nil {
		t.Error("a syscall that there is not has succeeded")
	}
}

// TestNote shows that a note stands in the journal before what is called after it, as the kernel's own.
func TestNote(t *testing.T) {
	t.Parallel()
	s := startWith(t, newLibrary().domains())
	s.kernel.Note(schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}}))
	if _, err := s.kernel.Do("", "Capability.Grant", &schema.GrantInput{PID: 1, AllowedSyscalls: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	entries := s.entries()
	if len(entries) != 2 || entries[0].Type != "Capability.Strip" || entries[0].conn != "kernel" || entries[1].Type != "Capability.Grant" {
		t.Errorf("journaled: %+v", entries)
	}
}

// TestNoteOnAFullDisk shows that what gives cause for notes costs a kernel nothing while its disk is full: anybody who fails
// to log in does.
func TestNoteOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		c := s.connect()
		s.room.full(syscall.ENOSPC)
		c.send(set("a", "x"))
		expect(t, c, "a 503")
		made := 0
		s.restoring = func(schema.Domain) { made++ }
		note := schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}})
		for range 3 {
			s.kernel.Note(note)
			synctest.Wait()
		}
		if made != 0 {
			t.Errorf("states were made anew %d times", made)
		}
		s.room.free()
		c.send(get("b")) // finds out that there is room
		expect(t, c, `b ""`)
		s.kernel.Note(note)
		synctest.Wait()
		if entries := s.entries(); len(entries) != 2 || entries[1].Type != "Capability.Strip" {
			t.Errorf("journaled: %+v", entries)
		}
		checkReplay(t, s, books)
	})
}

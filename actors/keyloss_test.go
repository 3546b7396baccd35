package actors_test

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
)

// TestRefusedRepetition sends a repetition while the journal refuses entries, and its 503 is the first entry that can be
// written: the first outcome is still valid, now and after the next start.
func TestRefusedRepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		c := s.connect()
		c.send(keyed("k", set("1", "x")))
		expect(t, c, "1 1")
		s.room.full(syscall.ENOSPC)
		c.send(get("2"))
		expect(t, c, `2 "x"`)
		c.send(keyed("k", set("3", "x")))
		expect(t, c, "3 503")
		s.room.free()
		c.send(keyed("k", set("4", "x")))
		synctest.Wait()
		if got := c.pending(); len(got) != 1 || (got[0].Code != "503" && got[0].String() != "4 1") {
			t.Errorf("answers %v, want 503 or the first outcome", show(got))
		}
		c.send(keyed("k", set("5", "x")))
		expect(t, c, "5 1")
		next, _ := s.restart()
		d := next.connect()
		d.send(keyed("k", set("6", "x")))
		expect(t, d, "6 1")
	})
}

// TestLostRepetition fails the write of a repetition: the repetition is refused, and the first outcome is on disk and
// stays.
func TestLostRepetition(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		lost []string
		want []string
	}{
		{"alone", []string{keyed("k", set("2", "x"))}, []string{"2 503"}},
		{"beside another command", []string{keyed("k", set("2", "x")), set("3", "y")}, []string{"2 503", "3 503"}},
		{"a conflict beside another command", []string{keyed("k", set("2", "other")), set("3", "y")}, []string{"2 503", "3 503"}},
		{"a query beside another command", []string{keyed("k", get("2")), set("3", "y")}, []string{"2 503", "3 503"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, states := startKeyed(t)
				c := s.connect()
				c.send(keyed("k", set("1", "x")))
				expect(t, c, "1 1")
				s.room.full(syscall.ENOSPC)
				c.send(test.lost...)
				synctest.Wait()
				// A repetition changes no state, so its answer may leave before its entry is on disk.
				if got := show(c.pending()); !cmp.Equal(got, test.want) && !cmp.Equal(got, []string{"2 1"}) {
					t.Errorf("answers %v, want %v", got, test.want)
				}
				s.room.free()
				c.send(ping("4", "1"), keyed("k", set("5", "x")))
				expect(t, c, `4 ""`, "5 1")
				if diff := cmp.Diff([]string{"x"}, states[schema.Memory].read()); diff != "" {
					t.Errorf("applied (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLostFirst shows that a key whose command was lost is free again: a retry runs the command, and later repetitions
// refer to its entry.
func TestLostFirst(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"x", "409"} { // the second changes nothing, and gets its answer without an entry
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, states := startKeyed(t)
				c := s.connect()
				s.room.full(syscall.ENOSPC)
				c.send(keyed("k", set("1", first)))
				synctest.Wait()
				c.pending()
				s.room.free()
				c.send(ping("2", "1"), keyed("k", set("3", first)))
				synctest.Wait()
				c.send(keyed("k", set("4", first)))
				synctest.Wait()
				got := c.pending()
				checkCauses(t, []string{"2", "3", "4"}, got)
				if want := map[string]string{"x": "4 1", "409": "4 409"}[first]; got[2].String() != want {
					t.Errorf("answer %s, want %s", got[2], want)
				}
				entries := s.entries()
				if outcome := entries[2].Outcome; !strings.HasSuffix(outcome, `,"repeats":2}`) {
					t.Errorf("the repetition's entry is %s, want it to refer to entry 2 (%s)", outcome, entries[1].Outcome)
				}
				checkReplay(t, s, states)
			})
		})
	}
}

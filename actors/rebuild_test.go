package actors_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestRebuildWithoutDescriptors has a write fail, and then one operation of making the states anew, one at a time, as where
// the process has no descriptor left. The kernel goes on: it refuses calls until the state can be read, and loses nothing.
func TestRebuildWithoutDescriptors(t *testing.T) {
	t.Parallel()
	hit := map[bool]int{}
	for then := 3; then < 30; then++ {
		synctest.Test(t, func(t *testing.T) {
			books := newLibrary()
			s := startWith(t, books.domains())
			c := s.connect()
			c.send(set("a", "x"), spawn("b", "s"))
			expect(t, c, "a 1", "b 1")
			s.files.Arm(faultfs.Fault{N: 1, Then: then, Err: syscall.EMFILE, Short: true})
			c.send(set("c", "y"))
			c.send(get("d"))
			synctest.Wait()
			log := s.log.String()
			failed := strings.Contains(log, "state cannot be made of the journal")
			if failed {
				hit[slices.Contains(show(c.pending()), "d 503")]++
			}
			c.pending()
			time.Sleep(time.Minute) // of the test's clock
			s.files.Arm(faultfs.Fault{})
			c.send(get("e")) // the first that is recorded again
			expect(t, c, `e "x"`)
			c.send(set("f", "z"), get("g"), processes("h"))
			expect(t, c, "f 2", `g "x z"`, `h "s"`)
			checkReplay(t, s, books)
			if err := s.end(); failed && err != nil {
				t.Errorf("operation %d after the write: the kernel ended: %v", then, err)
			}
		})
	}
	// While another domain than the one asked has no state, and no registry, there is an answer.
	if hit[true] == 0 {
		t.Errorf("%d states could not be made, and nothing was refused", hit[false])
	}
}

// TestEndWithoutState ends a kernel whose state cannot be made: its error says so, which keeps the daemon from saving that state.
func TestEndWithoutState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		c := s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		s.files.Arm(faultfs.Fault{N: 1, Then: 3, Err: syscall.EMFILE})
		c.send(set("b", "y"))
		expect(t, c, "b 503")
		if err := s.end(); err == nil || !strings.Contains(err.Error(), "rebuild domain") {
			t.Errorf("close kernel: got %v, want that a domain has no state", err)
		}
	})
}

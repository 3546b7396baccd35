package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestSlowSync shows that a sync which takes long holds up nobody who does not wait for it: another goroutine goes on with the loop.
// One that has lost it gives its report, and no answer is lost.
func TestSlowSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		long := time.Duration(0)
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				time.Sleep(long)
			}
		}
		a, b := s.connect(), s.connect()
		for _, pause := range []time.Duration{0, 500 * time.Millisecond, time.Microsecond, 10 * time.Millisecond, time.Second} {
			long = pause
			a.send(set("a", "x"))
			time.Sleep(pause / 2)
			b.send(ping("b", "1"))
			if slow := pause > 5*time.Millisecond; slow {
				time.Sleep(pause / 4)
				expectNothing(t, a)
			} else {
				time.Sleep(pause)
			}
			expect(t, b, `b ""`)
			time.Sleep(time.Second)
			checkCauses(t, []string{"a"}, a.take(1))
		}
	})
}

// TestSlowSyncAtTheEnd has a kernel end after its loop has been lent.
func TestSlowSyncAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				time.Sleep(time.Second)
			}
		}
		a := s.connect()
		a.send(set("a", "x"))
		time.Sleep(5 * time.Millisecond)
		a.endInput()
		checkCauses(t, []string{"a"}, a.rest())
		if err := s.end(); err != nil {
			t.Errorf("close kernel: %v", err)
		}
	})
}

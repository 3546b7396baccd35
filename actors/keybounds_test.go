package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongKey shows that a key that is too long is refused, and that the call did not run.
func TestLongKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		c := s.seven()
		c.send(keyed(strings.Repeat("k", 257), set("1", "x")), keyed(strings.Repeat("k", 256), set("2", "y")))
		expect(t, c, "1 422", "2 1")
		next, states := s.restart()
		d := next.seven()
		d.send(keyed(strings.Repeat("k", 256), set("3", "y")), set("4", "z"))
		expect(t, d, "3 1", "4 2")
		checkReplay(t, next, states)
	})
}

// TestKeysHaveRoom shows that the memory for the keys of a process is bounded, before and after a restart, that other
// processes are not affected, that keys in use stay valid, and that there is room again a day later.
func TestKeysHaveRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		const room = 600 // for three keys of two letters with their outcomes, but not for a fourth
		for life := range 2 {
			s.keys.SetRoom(room)
			c := s.seven()
			for i := range 3 {
				c.send(keyed(fmt.Sprint("k", i), set(fmt.Sprint(i), "x")))
			}
			expect(t, c, "0 1", "1 2", "2 3")
			c.send(keyed("more", set("a", "x")), keyed("k0", set("b", "x")))
			expect(t, c, "a 429", "b 1")
			o := s.connect()
			o.send(keyed("k0", set("c", "o")), keyed("k0", set("d", "o")))
			expect(t, o, "c 4", "d 4")
			if life == 0 {
				s, _ = s.restart()
			}
		}
		time.Sleep(25 * time.Hour)
		c := s.seven()
		c.send(keyed("more", set("e", "x")))
		expect(t, c, "e 5")
	})
}

// TestKeyUnderWay shows that a repetition gets an error while the first call waits.
func TestKeyUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		c, d := s.seven(), s.seven()
		c.send(keyed("k", minute("1")))
		synctest.Wait()
		d.send(keyed("k", minute("2")))
		synctest.Wait()
		got := d.pending()
		if len(got) != 1 || !strings.Contains(got[0].Text, "still being carried out") {
			t.Errorf("answers %v, want one that says that the first is in flight", show(got))
		}
		time.Sleep(time.Minute)
		expect(t, c, `1 [""]`)
	})
}

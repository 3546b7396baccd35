package actors_test

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// TestWaiterHangsUp shows that a call whose connection has ended stops waiting: the connection ends immediately, nothing is
// applied, and a later message finds no waiting call.
func TestWaiterHangsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startMailboxes(t)
		waiter, sender := s.connect(), s.connect()
		waiter.send(minute("a"), minute("b"))
		synctest.Wait()
		begun := time.Now()
		_ = waiter.link.Close()
		<-waiter.done
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the connection ended after %s", waited)
		}
		sender.send(sendMsg("c", `"x"`))
		expect(t, sender, "c true")
		if diff := cmp.Diff([]string{"Syscall.SendMsg"}, states[schema.Ipc].read()[len(states[schema.Ipc].read())-1:]); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestFullWindowHangsUp shows the same for a connection whose window is full, so that it does not read.
func TestFullWindowHangsUp(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "interrupt"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := startMailboxes(t)
				c := s.connect()
				c.send(minute("a"))
				for range 2 * actors.WindowFrames {
					c.send(ping("b", "1"))
				}
				synctest.Wait()
				begun := time.Now()
				if how == "close" {
					_ = c.link.Close()
				} else {
					c.link.Interrupt()
				}
				if answers := c.rest(); how == "interrupt" && len(answers) != actors.WindowFrames+1 {
					t.Errorf("%d answers", len(answers))
				}
				<-c.done
				if waited := time.Since(begun); waited != 0 {
					t.Errorf("Serve returned after %s", waited)
				}
				s.endCleanly()
			})
		})
	}
}

// TestShutdownEndsWaiting interrupts a connection as the end of the kernel does: the waiting call gets an error, later
// frames are answered, and the connection ends.
func TestShutdownEndsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		c := s.connect()
		c.send(minute("a"), ping("b", "1"))
		synctest.Wait()
		begun := time.Now()
		c.link.Interrupt()
		if diff := cmp.Diff([]string{"a 503", `b ""`}, show(c.rest())); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		s.endCleanly()
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the end took %s", waited)
		}
	})
}

// TestHalfCloseWaits shows that a client that has only ended its side still waits for its answer.
func TestHalfCloseWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		waiter, sender := s.connect(), s.connect()
		waiter.send(minute("a"))
		waiter.endInput()
		synctest.Wait()
		sender.send(sendMsg("b", `"x"`))
		expect(t, sender, "b true")
		expect(t, waiter, `a ["Syscall.SendMsg"]`)
	})
}

// TestLostMessage loses the message that wakes a waiting call, because the disk is full: the waiting call does not answer
// with it.
func TestLostMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startMailboxes(t)
		waiter, sender := s.connect(), s.connect()
		waiter.send(minute("a"))
		synctest.Wait()
		s.room.full(syscall.ENOSPC)
		sender.send(sendMsg("b", `"x"`))
		expect(t, sender, "b 503")
		for _, a := range waiter.pending() {
			if a.Code != "503" {
				t.Errorf("answered with a message that was never sent: %s", a)
			}
		}
		s.room.free()
		sender.send(ping("c", "1"), sendMsg("d", `"y"`))
		expect(t, sender, `c ""`, "d true")
		checkReplay(t, s, states)
	})
}

// TestWaiterDies fails a connection while its call waits: no receiver is left, so the message must stay in the mailbox, and
// nothing of the call may be left when the kernel has ended.
func TestWaiterDies(t *testing.T) {
	t.Parallel()
	t.Run("and something comes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, states := startMailboxes(t)
			dieWaiting(s)
			sender := s.connect()
			sender.send(sendMsg("d", `"x"`))
			expect(t, sender, "d true")
			if diff := cmp.Diff([]string{"Syscall.SendMsg"}, states[schema.Ipc].read()); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("and the kernel ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, _ := startMailboxes(t)
			dieWaiting(s)
			s.endCleanly()
			log := s.log.String()
			time.Sleep(2 * time.Minute) // longer than the call would have waited
			if later := strings.TrimPrefix(s.log.String(), log); later != "" {
				t.Errorf("logged after the end:\n%s", later)
			}
		})
	})
}

// dieWaiting makes a connection panic while a call of its own waits.
func dieWaiting(s *system) {
	s.t.Helper()
	l := newLink(schema.OsMessage, schema.MaxLine, 10)
	c := s.serve(l)
	c.send(ping("a", "1")) // its answer does not fit, so a goroutine still writes it
	synctest.Wait()
	c.send(minute("b"))
	synctest.Wait()
	l.breaks = func() { panic(internals) }
	l.out.refuse(net.ErrClosed)
	<-c.done
	synctest.Wait()
	if !strings.Contains(s.log.String(), "actor panicked") {
		s.t.Errorf("the connection did not panic")
	}
}

package actors_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
)

// TestHalfClose shows that a client that closes its side after its last frame still gets every answer.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	for _, frames := range []int{0, 1, 300} {
		for _, capacity := range []int{1, unbounded} {
			for _, ending := range []string{"", "\n"} {
				t.Run(fmt.Sprintf("%d frames, capacity %d, ending %q", frames, capacity, ending), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := start(t, newFake())
						l := newLink(schema.OsMessage, schema.MaxLine, capacity)
						c := s.serve(l)
						var lines, want []string
						for i := range frames {
							lines, want = append(lines, ping(fmt.Sprint(i), "1")), append(want, fmt.Sprint(i))
						}
						text := strings.Join(lines, "\n") + ending
						c.sendRaw(text[:len(text)/2])
						synctest.Wait() // all of that is taken in: reading goes on until the end, not until a pause
						c.sendRaw(text[len(text)/2:])
						c.endInput()
						synctest.Wait()
						l.out.widen(unbounded)
						checkCauses(t, append([]string{}, want...), c.rest())
					})
				})
			}
		}
	}
}

// TestBrokenLink shows that a connection ends when the link breaks, whichever way it does, and that the kernel goes on. The
// bubble checks that no goroutine is left.
func TestBrokenLink(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := []struct {
		name     string
		capacity int
		act      func(c *client)
	}{
		{name: "at the first write", capacity: unbounded, act: func(c *client) {
			c.link.out.refuse(broken)
			c.send(echo("a", "1"))
		}},
		{name: "at a later write", capacity: unbounded, act: func(c *client) {
			c.send(echo("a", "1"))
			synctest.Wait()
			c.link.out.refuse(broken)
			c.send(echo("b", "1"))
		}},
		{name: "while a write waits", capacity: 10, act: func(c *client) {
			c.send(echo("a", "1"), echo("b", "2"))
			synctest.Wait()
			c.send(echo("c", "3"))
			synctest.Wait()
			c.link.out.refuse(broken)
		}},
		{name: "while the window is full", capacity: 10, act: func(c *client) {
			for i := range 1000 {
				c.send(echo(fmt.Sprint(i), "1"))
			}
			synctest.Wait()
			c.link.out.refuse(broken)
		}},
		{name: "while it reads", capacity: unbounded, act: func(c *client) {
			c.send(echo("a", "1"))
			synctest.Wait()
			c.link.in.cutOff(broken)
		}},
		{name: "closed", capacity: 10, act: func(c *client) {
			c.send(echo("a", "1"))
			synctest.Wait()
			_ = c.link.Close()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t, newFake())
				c := s.serve(newLink(schema.OsMessage, schema.MaxLine, test.capacity))
				test.act(c)
				<-c.done
				neighbour := s.connect()
				neighbour.send(echo("n", "1"))
				expect(t, neighbour, `n {"echo":"1"}`)
				s.endCleanly()
			})
		})
	}
}

// TestInterrupt shows that an interrupted connection answers all frames that it has received, and reads no more.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		gate := s.holdSyncs()
		c := s.connect()
		c.send(echo("a", "1"), echo("b", "2"))
		synctest.Wait()
		c.sendRaw(echo("c", "3") + "\n" + `{"half": `)
		synctest.Wait()
		c.link.Interrupt()
		c.send(echo("d", "4"))
		synctest.Wait()
		select {
		case <-c.done:
			t.Error("the connection ended with calls in flight")
		default:
		}
		gate.open()
		if diff := cmp.Diff([]string{`a {"echo":"1"}`, `b {"echo":"2"}`, `c {"echo":"3"}`}, show(c.rest())); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

// TestShutdown shows that the end of the kernel is asked for by a call that is answered as any other, with those around
// it, however soon everything is interrupted then.
func TestShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, self.New(nil))
		c := s.serve(newLink(schema.OsMessage, schema.MaxLine, 1))
		c.send(ping("a", "1"), frame(schema.OsMessage, schema.KindCommand, "Syscall.Shutdown", "{}", "b"), ping("c", "2"))
		<-s.kernel.Stopping()
		c.link.Interrupt()
		var got []string
		for range 3 {
			got = append(got, c.next().String())
		}
		if diff := cmp.Diff([]string{`a {"payload":1}`, `b {"success":true}`, `c {"payload":2}`}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		<-c.done
		s.endCleanly()
	})
}

// TestShutdownRefused shows that only the operator can end the kernel.
func TestShutdownRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, self.New(nil))
		agent := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		agent.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Shutdown", "{}", "a"), ping("b", "1"))
		expect(t, agent, "a 403", `b {"payload":1}`)
		select {
		case <-s.kernel.Stopping():
			t.Error("an agent ends the kernel")
		default:
		}
	})
}

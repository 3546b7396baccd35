package actors_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// TestFollowerEnds shows that each way in which a connection ends also ends its subscription immediately: later messages go
// to another. A message that was not acknowledged is delivered again.
func TestFollowerEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(p *post, c *client)
	}{
		{"half-close", func(_ *post, c *client) { c.endInput() }},
		{"close", func(_ *post, c *client) { _ = c.link.Close() }},
		{"interrupt", func(_ *post, c *client) { c.link.Interrupt() }},
		{"break", func(p *post, c *client) {
			c.link.out.refuse(net.ErrClosed)
			c.send(ping("x", "1"))
		}},
		{"panic", func(p *post, c *client) {
			c.link.breaks = func() { panic(internals) }
			c.link.out.refuse(net.ErrClosed)
			c.send(ping("x", "1"))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := startPost(t)
				follower, c := p.connect(), p.connect()
				follower.send(subscribe("s", `,"ack":true`))
				c.send(sendMsg("a", "1"), sendMsg("b", "2"))
				c.take(2)
				follower.take(3)
				c.send(command("k", "Ipc.Ack", `{"pid":7,"msg_ids":[1]}`))
				expect(t, c, `k {"acknowledged":[1]}`)
				begun := time.Now()
				test.end(p, follower)
				<-follower.done
				if waited := time.Since(begun); waited != 0 {
					t.Errorf("the connection ended after %s", waited)
				}
				c.send(sendMsg("d", "3"), subscribe("t", ""))
				if got := c.take(4); payloads(got) != "2 3 " || strings.Count(fmt.Sprint(got), `"redelivered":true`) != 1 {
					t.Errorf("pushed %v", got)
				}
				p.check(t)
			})
		})
	}
}

// TestKernelEndsFollowing closes a kernel while subscriptions wait, and one is being served.
func TestKernelEndsFollowing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		follower, sender := p.connect(), p.connect()
		follower.send(subscribe("s", `,"ack":true`), receive("r", `"pid":7,"wait_ms":60000`))
		synctest.Wait()
		sender.send(sendMsg("a", "1"))
		follower.link.Interrupt()
		sender.link.Interrupt()
		synctest.Wait()
		p.check(t)
	})
}

// TestTooManyFollowed subscribes without a limit on one connection: it gets an error when it has the maximum number, and
// the resources of the last subscription are released.
func TestTooManyFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		const most = 64
		p.kernel.Recover([]schema.Request{schema.IPCOpen.With(&schema.MailboxInput{PIDs: numbers(100, most+1)})})
		greedy, other := p.connect(), p.connect()
		for _, pid := range numbers(100, most) {
			greedy.send(command("s", "Ipc.Subscribe", fmt.Sprintf(`{"pid":%d}`, pid)))
			greedy.next()
		}
		last := command("t", "Ipc.Subscribe", fmt.Sprintf(`{"pid":%d}`, 100+most))
		greedy.send(last)
		greedy.next()
		if a := greedy.next(); a.Type != "Ipc.Unsubscribed" || !strings.Contains(string(a.Data), `"code":429`) || a.Meta.Causation != "t" {
			t.Errorf("the follower got %+v %s", a, a.Data)
		}
		other.send(last)
		if a := other.next(); a.Kind != schema.KindReply {
			t.Errorf("refused: %s", a.Data)
		}
		p.check(t)
	})
}

// numbers returns n numbers from first on.
func numbers(first int64, n int) (list []int64) {
	for i := range int64(n) {
		list = append(list, first+i)
	}
	return list
}

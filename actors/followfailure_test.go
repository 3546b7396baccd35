package actors_test

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/schema"
)

// TestPushLost fills the disk while a message is sent to a follower: neither happens, and the follower gets an event that
// its subscription has ended. When there is room it may subscribe again, and gets later messages.
func TestPushLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		follower, sender := p.connect(), p.connect()
		follower.send(subscribe("s", ""))
		follower.next()
		p.room.full(syscall.ENOSPC)
		sender.send(sendMsg("a", "1"))
		expect(t, sender, "a 503")
		a := follower.next()
		if a.Kind != schema.KindEvent || a.Type != "Ipc.Unsubscribed" || a.Meta.Causation != "s" || !strings.Contains(string(a.Data), `"code":503`) {
			t.Errorf("the follower got %+v %s", a, a.Data)
		}
		p.room.free()
		sender.send(ping("b", "1"))
		sender.next()
		synctest.Wait()
		follower.send(subscribe("t", ""))
		expect(t, follower, `t {"receiver_pid":7,"ack":false}`)
		sender.send(sendMsg("c", "2"))
		sender.next()
		if got := follower.next(); payloads([]answer{got}) != "2 " {
			t.Errorf("pushed %s", got.Data)
		}
		p.check(t)
	})
}

// TestReturnIsOwed ends a connection while the disk is full: its messages in flight return to the mailbox as soon as that
// can be journaled, without another call.
func TestReturnIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		reader, c := p.connect(), p.connect()
		c.send(sendMsg("a", "1"))
		c.next()
		reader.send(receive("r", `"pid":7,"ack":true`))
		reader.next()
		p.room.full(syscall.ENOSPC)
		_ = reader.link.Close()
		<-reader.done
		synctest.Wait()
		if n := p.count("Ipc.Return"); n != 0 {
			t.Errorf("%d entries on a full disk", n)
		}
		p.room.free()
		c.send(ping("b", "1"))
		c.next()
		synctest.Wait()
		c.send(receive("d", `"pid":7`))
		if got := c.next(); payloads([]answer{got}) != "1 " || !strings.Contains(string(got.Data), `"redelivered":true`) {
			t.Errorf("received %s", got.Data)
		}
		p.check(t)
	})
}

// TestRecoveryIsOwed starts a kernel on a full disk: what the recovery removes is removed when that can be journaled.
func TestRecoveryIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		p.room.full(syscall.ENOSPC)
		p.kernel.Recover([]schema.Request{schema.IPCClose.With(&schema.MailboxInput{PIDs: []int64{7}})})
		synctest.Wait()
		p.room.free()
		c := p.connect()
		c.send(ping("a", "1"))
		c.next()
		synctest.Wait()
		c.send(receive("r", `"pid":7`))
		expect(t, c, "r 404")
		p.check(t)
	})
}

// TestRefusedPush fills the disk before a follower could get more: nothing is tried that would have to be undone, and the
// mailbox keeps its messages.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		follower, sender := p.serve(newLink(schema.OsMessage, schema.MaxLine, 300)), p.connect()
		follower.send(subscribe("s", ""))
		sender.send(sendMsg("a", "1"), sendMsg("b", "2"), sendMsg("c", "3"))
		sender.take(3)
		synctest.Wait()
		sender.send(sendMsg("d", "4"))
		expect(t, sender, "d "+`{"receiver_pid":7,"status":"DELIVERED","msg_id":4}`)
		p.room.full(syscall.ENOSPC)
		sender.send(sendMsg("e", "5"))
		expect(t, sender, "e 503")
		synctest.Wait()
		p.restoring = func(name schema.Domain) { t.Errorf("the state of %s was rebuilt", name) }
		follower.next()
		if got := follower.take(3); payloads(got) != "1 2 3 " {
			t.Errorf("pushed %v", got)
		}
		if a := follower.next(); a.Type != "Ipc.Unsubscribed" {
			t.Errorf("the follower got %+v %s", a, a.Data)
		}
		synctest.Wait()
		p.restoring = nil
		p.room.free()
		sender.send(ping("f", "1"), receive("g", `"pid":7`))
		if got := sender.take(2); payloads(got) != "4 " {
			t.Errorf("received %v", got)
		}
		p.check(t)
	})
}

package actors_test

import (
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// slowLink is a link that hears late that its peer has gone.
type slowLink struct {
	*link

	heard chan struct{}
}

func (l *slowLink) AwaitHangup() {
	<-l.heard
	l.link.AwaitHangup()
}

// TestConnectionStays shows that a connection which has answered all is there until Serve has told it that nobody is: nothing
// is sent to one that is not. It has asked for that itself.
func TestConnectionStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		l := &slowLink{newLink(schema.OsMessage, schema.MaxLine, unbounded), make(chan struct{})}
		c := newClient(t, l.link)
		go func() {
			defer close(c.done)
			s.kernel.Serve(l, kernel.Caller{PID: kernel.Operator, Conn: "stays"})
		}()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		c.endInput()
		synctest.Wait()
		if !actors.Connected(s.kernel, "stays") {
			t.Error("it has gone before it was told to")
		}
		close(l.heard) // the peer says no more of itself, and has not hung up
		<-c.done
		if actors.Connected(s.kernel, "stays") {
			t.Error("it is still there")
		}
	})
}

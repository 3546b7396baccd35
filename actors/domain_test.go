package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestCall shows what a domain gets of a call, and that its result reaches the caller.
func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type told struct {
			Caller  kernel.Caller
			Syscall string
			ID      string
			Time    int64
		}
		var got told
		s := start(t, domainFunc(func(call *kernel.Call) {
			got = told{Caller: call.Caller, Syscall: call.Syscall.Type, ID: call.Message.Meta.ID, Time: call.Time}
		}))
		c := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		c.send(ping("a", "1"))
		synctest.Wait()
		want := told{Caller: kernel.Caller{PID: 7, Conn: "c-1"}, Syscall: "Syscall.Ping", ID: "a", Time: time.Now().UnixMilli()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("call (-want +got):\n%s", diff)
		}
		if out := string(c.link.out.drain()); !strings.Contains(out, `"kernel":{"seq":1,"pid":7,"tick":0,"latency_us":`) {
			t.Errorf("no proof in the answer: %s", out)
		}
	})
}

// TestApply shows that only commands that succeed change the state.
func TestApply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		domain := newFake()
		s := start(t, domain)
		s.connect().send(ping("a", "1"), echo("b", "2"), echo("c", "refuse"), echo("d", "panic"), echo("e", "3"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"c-1 2", "c-1 3"}, domain.changes()); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"c-1 1", "c-1 2", "c-1 refuse", "c-1 panic", "c-1 3"}, domain.history()); diff != "" {
			t.Errorf("decided (-want +got):\n%s", diff)
		}
	})
}

// TestBurst shows that a connection which sends much at once has the loop for so many calls, not for all: another's call that came
// meanwhile is next.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		domain := newFake()
		s := start(t, domain)
		burst, neighbour := s.connect(), s.connect()
		frames := []string{echo("0", "hold")}
		for i := 1; i < 3*actors.WindowFrames; i++ {
			frames = append(frames, echo(fmt.Sprint(i), "x"))
		}
		burst.send(frames...)
		synctest.Wait()
		neighbour.send(echo("n", "y"))
		synctest.Wait()
		domain.release()
		synctest.Wait()
		ran := domain.history()
		if at := slices.Index(ran, "c-2 y"); at != actors.WindowFrames || len(ran) != 3*actors.WindowFrames+1 {
			t.Errorf("the neighbour's call ran after %d of %d, want %d", at, len(ran)-1, actors.WindowFrames)
		}
	})
}

// TestClose shows that a closed kernel says so, without an error.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		s.endCleanly()
		<-s.kernel.Stopping()
	})
}

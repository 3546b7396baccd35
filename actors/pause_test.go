package actors_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// pausing are processes that are all paused, or none.
type pausing struct{ on atomic.Bool }

func (p *pausing) Process(pid int64) *schema.Descriptor {
	return &schema.Descriptor{PID: pid, Paused: p.on.Load()}
}

// startPausing starts a kernel whose gate asks, with a connection of pid 7.
func startPausing(t *testing.T) (*gated, *pausing, *client) {
	t.Helper()
	g, paused := &gated{desk: &desk{answers: make(map[string]string)}, states: newRecorders()}, &pausing{}
	mailboxes(g.states)
	g.system = startHosting(t, faultfs.NewDisk(), g.states.domains(), idempotency.New(), textLog, actors.Hosting{},
		kernel.Gate{Approval: g.stage}, paused)
	return g, paused, g.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
}

// TestPauseLost shows that a call that waits because of a pause that the journal has lost is decided: it runs, or is
// refused while the disk is full.
func TestPauseLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, paused, c := startPausing(t)
		operator := g.connect()
		paused.on.Store(true)
		c.send(set("a", "waits"))
		synctest.Wait()
		expectNothing(t, c)
		paused.on.Store(false) // as the journal has it
		g.room.fullOnce(syscall.ENOSPC, `"key":"lost"`)
		operator.send(set("b", "lost"))
		operator.take(1)
		operator.send(ping("p", "1"))
		operator.take(1)
		synctest.Wait()
		if got := show(c.pending()); len(got) != 1 || got[0] != "a 1" && got[0] != "a 503" {
			t.Errorf("answers %q", got)
		}
	})
}

// TestPausedOutlastsWaits shows that a paused process's calls continue to wait after their own time, for an approval or for
// a letter. They are refused only when their connection ends.
func TestPausedOutlastsWaits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		call string
		want string
	}{
		{"an approval", set("a", "ask"), "a 425"},
		{"a letter", minute("a"), `a [""]`},
	}
	for _, test := range tests {
		for _, gone := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					g, paused, c := startPausing(t)
					c.send(test.call)
					synctest.Wait()
					paused.on.Store(true)
					time.Sleep(time.Hour)
					synctest.Wait()
					expectNothing(t, c)
					if gone {
						_ = c.link.Close()
						<-c.done
						if e := g.entries(); !strings.Contains(e[len(e)-1].Outcome, "process.paused") {
							t.Errorf("its connection has ended: %+v", e)
						}
						return
					}
					paused.on.Store(false)
					g.kernel.Answered(kernel.Resumed)
					time.Sleep(patience)
					if got := c.next().String(); got != test.want {
						t.Errorf("got %s, want %s", got, test.want)
					}
				})
			})
		}
	}
}

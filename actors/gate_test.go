package actors_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// desk is a stage of the gate. It asks about commands whose word begins with "ask", about receiving, and about types that a
// test names.
type desk struct {
	mu      sync.Mutex
	types   []string
	answers map[string]string // by question: yes or no
	asked   int
}

const patience = 50 * time.Second

func (d *desk) stage(call *kernel.Call) kernel.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	about := word(call)
	for _, typ := range d.types {
		if call.Syscall.Type == typ {
			about = "ask-" + typ
		}
	}
	if !strings.HasPrefix(about, "ask") {
		return kernel.Verdict{}
	}
	d.asked++
	switch d.answers[about] {
	case "yes":
		return kernel.Verdict{}
	case "no":
		return kernel.Deny(fault.CapabilityDenied.New("%s was refused", about))
	}
	return kernel.Pend(about, patience)
}

// ask makes the desk ask about all calls of a type.
func (d *desk) ask(typ string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.types = append(d.types, typ)
}

// gated is a kernel whose gate asks.
type gated struct {
	*system
	*desk
	states recorders
}

func startGated(t *testing.T, domains map[schema.Domain]kernel.Domain) *gated {
	t.Helper()
	g := &gated{desk: &desk{answers: make(map[string]string)}, states: newRecorders()}
	mailboxes(g.states)
	all := g.states.domains()
	for name, d := range domains {
		all[name] = d
	}
	g.system = startHosting(t, faultfs.NewDisk(), all, idempotency.New(), textLog, actors.Hosting{}, kernel.Gate{Approval: g.stage})
	return g
}

// answer answers a question.
func (g *gated) answer(question, answer string) {
	g.mu.Lock()
	g.answers[question] = answer
	g.mu.Unlock()
	g.kernel.Answered(question)
	synctest.Wait()
}

// TestPended shows that a call that waits at the gate delays only its own connection, and that its frames take effect in
// order with any answer: earlier frames immediately, later ones after the answer, however they arrived.
func TestPended(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer func(g *gated)
		want   string // of the call that waits
		waited time.Duration
	}{
		{"approved", func(g *gated) { g.answer("ask", "yes") }, "b 3", 0},
		{"refused", func(g *gated) { g.answer("ask", "no") }, "b 403", 0},
		{"not answered in time", func(*gated) {}, "b 425", patience},
		{"woken without a match", func(g *gated) {
			for range 4 {
				g.kernel.WakeUp(schema.Memory)
				g.kernel.Answered("another")
				time.Sleep(10 * time.Second)
			}
		}, "b 425", patience},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := startGated(t, nil)
				asker, other := g.connect(), g.connect()
				begun := time.Now()
				asker.send(set("a", "first"), set("b", "ask"), set("c", "third"))
				expect(t, asker, "a 1")
				asker.send(set("d", "fourth"), ping("e", "1"))
				synctest.Wait()
				expectNothing(t, asker)
				other.send(set("f", "between"), get("g"))
				expect(t, other, "f 2", `g "first between"`)
				test.answer(g)
				third, fourth := "c 3", "d 4"
				if test.want == "b 3" {
					third, fourth = "c 4", "d 5"
				}
				got := show(asker.take(4))
				if diff := cmp.Diff([]string{test.want, third, fourth, `e ""`}, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if waited := time.Since(begun); waited != test.waited {
					t.Errorf("waited %s, want %s", waited, test.waited)
				}
				if diff := cmp.Diff([]string{"a", "f", "g", "b", "c", "d", "e"}, g.journaled()); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
				checkReplay(t, g.system, g.states)
			})
		})
	}
}

// TestPendedTwice shows that each call of a batch gets its own question, in order.
func TestPendedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		c := g.connect()
		c.send(set("a", "ask-1"), set("b", "ask-2"), set("c", "x"))
		synctest.Wait()
		c.send(set("d", "ask-3"), set("e", "y"))
		synctest.Wait()
		g.answer("ask-2", "yes")
		g.answer("ask-3", "no")
		expectNothing(t, c)
		g.answer("ask-1", "yes")
		expect(t, c, "a 1", "b 2", "c 3", "d 403", "e 4")
		checkReplay(t, g.system, g.states)
	})
}

// TestPendedKey shows that a call that was not approved has not used its idempotency key, before and after a restart, and
// that its answer names the question.
func TestPendedKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		c := g.connect()
		c.send(keyed("k", set("a", "ask")))
		if a := c.next(); a.Code != "425" || !strings.Contains(a.Text, "approval ask,") {
			t.Errorf("got %s: %s", a, a.Text)
		}
		g.answer("ask", "yes")
		c.send(keyed("k", set("b", "ask")), keyed("k", set("c", "ask")))
		expect(t, c, "b 1", "c 1")
		checkReplay(t, g.system, g.states)
	})
}

// TestPendedHangUp shows that a question of a connection that has ended is dropped: the call that waits at the gate is not
// executed, and later frames need no answer.
func TestPendedHangUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		c, begun := g.connect(), time.Now()
		c.send(set("a", "ask-1"), set("b", "ask-2"))
		synctest.Wait()
		c.send(set("c", "ask-3"), set("d", "x"))
		synctest.Wait()
		_ = c.link.Close()
		<-c.done
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the connection ended after %s", waited)
		}
		var verdicts []string
		for _, e := range g.entries() {
			_, pending := strings.CutPrefix(e.Outcome, `{"kind":"error"`)
			verdicts = append(verdicts, e.ID+map[bool]string{true: " pending"}[pending])
		}
		if diff := cmp.Diff([]string{"a pending", "b pending", "c pending", "d"}, verdicts); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		if asked := g.asked; asked != 4 {
			t.Errorf("asked %d times", asked)
		}
		g.answer("ask-1", "yes") // too late
		checkReplay(t, g.system, g.states)
	})
}

// TestPendedThenWaits shows that an approved call waits in its domain as long as others do.
func TestPendedThenWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		g.ask("Ipc.Receive")
		c := g.connect()
		c.send(minute("a"))
		time.Sleep(patience - time.Second)
		g.answer("ask-Ipc.Receive", "yes")
		begun := time.Now()
		if got := c.next().String(); got != `a [""]` {
			t.Errorf("got %s", got)
		}
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("waited %s", waited)
		}
	})
}

// TestPendedAuditLog shows that queries about the journal pass the same gate, including those that are computed outside of
// the actor.
func TestPendedAuditLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		g.ask("Audit.Log")
		c := g.connect()
		c.send(query("a", "Audit.Metrics", "{}"), query("b", "Audit.Log", "{}"), query("c", "Audit.Log", "{}"), ping("d", "1"))
		if a := c.next(); a.Kind != schema.KindReply {
			t.Errorf("got %s", a)
		}
		synctest.Wait()
		expectNothing(t, c)
		g.answer("ask-Audit.Log", "yes")
		checkCauses(t, []string{"b", "c", "d"}, c.take(3))
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, g.journaled()); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
	})
}

// TestPendedOwnCall shows that the kernel's own calls pass the same gate, and are also cancelled there.
func TestPendedOwnCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		in := &schema.MemorySetInput{Key: "ask", Value: schema.Value("1")}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := g.kernel.Do(ctx, kernel.Own{Request: schema.MemorySet.With(in)}); !errors.Is(err, fault.ApprovalPending) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second, func() {
			g.mu.Lock()
			g.answers["ask"] = "yes"
			g.mu.Unlock()
			g.kernel.Answered("ask")
		})
		if data, err := g.do("", schema.MemorySet.With(in)); string(data) != "1" || err != nil {
			t.Errorf("got %s, %v", data, err)
		}
	})
}

// TestPendedBehindSteps shows that a call that waits at the gate is also answered and cancelled while its domain is busy
// with the steps of another call.
func TestPendedBehindSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := startGated(t, nil)
		held := make(chan struct{})
		g.states[schema.Capability].apply = func(*kernel.Call) { <-held }
		g.states[schema.Memory].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if word(call) != "steps" {
				return kernel.Result{}, false, nil
			}
			return kernel.Result{Data: []byte("{}"), Steps: []schema.Request{schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{1}})}}, true, nil
		}
		first, second, busy := g.connect(), g.connect(), g.connect()
		first.send(set("a", "ask-1"), set("b", "x"))
		second.send(set("c", "ask-2"), set("d", "y"))
		synctest.Wait()
		busy.send(set("s", "steps"))
		synctest.Wait()
		first.send(set("e", "z"))
		g.answer("ask-1", "yes")
		_ = second.link.Close()
		synctest.Wait()
		close(held)
		expect(t, busy, "s {}")
		expect(t, first, "a 2", "b 3", "e 4")
		<-second.done
		checkReplay(t, g.system, g.states)
	})
}

// TestPendedSubscription shows that a subscription continues while the gate allows its subscriber to subscribe: it waits
// for an answer, and ends if that is no, or does not arrive.
func TestPendedSubscription(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer string
		want   string
	}{
		{"approved", "yes", `"payload":2`},
		{"refused", "no", `"code":403`},
		{"not answered in time", "", `"code":425`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := startGated(t, map[schema.Domain]kernel.Domain{schema.Ipc: ipc.New(ipc.Options{})})
				g.kernel.Recover([]schema.Request{schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{7}})})
				follower, c := g.connect(), g.connect()
				follower.send(subscribe("s", ""))
				follower.take(1)
				c.send(sendMsg("a", "1"))
				c.take(1)
				follower.take(1)
				g.ask("Ipc.Subscribe")
				c.send(sendMsg("b", "2"))
				c.take(1)
				synctest.Wait()
				expectNothing(t, follower)
				if test.answer != "" {
					g.answer("ask-Ipc.Subscribe", test.answer)
				}
				if a := follower.next(); !strings.Contains(string(a.Data), test.want) {
					t.Errorf("pushed %s, want %s", a.Data, test.want)
				}
				g.endCleanly()
			})
		})
	}
}

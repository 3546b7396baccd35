package actors_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// mailboxes lets the ipc recorder's receivers wait for a message as long as they say. A message wakes its process.
func mailboxes(states recorders) {
	states[schema.Ipc].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
		switch in := call.Input.(type) {
		case *schema.SendMsgInput:
			return kernel.Result{Data: []byte("true"), Wakes: []int64{in.ReceiverPID}}, true, nil
		case *schema.ReceiveInput:
			if len(applied) == 0 && *in.WaitMS > 0 && !call.Final {
				return kernel.Result{Wait: time.Duration(*in.WaitMS) * time.Millisecond}, true, nil
			}
			return kernel.Result{Data: []byte(`["` + strings.Join(applied, " ") + `"]`)}, true, nil
		}
		return kernel.Result{}, false, nil
	}
}

// minute returns a receive that waits for a minute as process 7, which receives what sendMsg sends.
func minute(id string) string { return receive(id, `"pid":7,"wait_ms":60000`) }

func startMailboxes(t *testing.T) (*system, recorders) {
	t.Helper()
	states := newRecorders()
	mailboxes(states)
	return startWith(t, states.domains()), states
}

// TestWoken shows that a waiting call is answered when a message for its process arrives, and not before; that it delays no
// other call meanwhile; and that it is journaled once, with its answer, after the message that woke it.
func TestWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startMailboxes(t)
		waiter, second, sender := s.connect(), s.connect(), s.connect()
		waiter.send(minute("a"), ping("a2", "1"))
		synctest.Wait()
		second.send(minute("b"))
		synctest.Wait()
		sender.send(receive("c", `"pid":8,"wait_ms":0`), get("d"), query("e", "Process.List", "{}"))
		expect(t, sender, `c [""]`, `d ""`, `e ""`)
		expectNothing(t, waiter)
		if diff := cmp.Diff([]string{"c", "d", "e"}, s.journaled()); diff != "" {
			t.Errorf("journal while a call waits (-want +got):\n%s", diff)
		}

		before := time.Now()
		sender.send(sendMsg("f", `"hello"`))
		expect(t, sender, "f true")
		synctest.Wait()
		got := append(waiter.pending(), second.pending()...)
		checkCauses(t, []string{"a", "a2", "b"}, got)
		if waited := time.Since(before); waited != 0 {
			t.Errorf("woken after %s", waited)
		}
		if ids := s.journaled(); strings.Join(ids[3:], " ") != "f a b a2" {
			t.Errorf("journal: %v, want the message before those that it woke", ids)
		}
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestWakeUp shows that an event from outside that is not a call makes a domain decide all waiting calls again, of all
// processes, and delays no later call.
func TestWakeUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		var come atomic.Bool
		states[schema.Ipc].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if !come.Load() && !call.Final {
				return kernel.Result{Wait: time.Minute}, true, nil
			}
			return kernel.Result{Data: []byte("true")}, true, nil
		}
		s := startWith(t, states.domains())
		first, second := s.connect(), s.connect()
		first.send(minute("a"))
		second.send(receive("b", `"pid":8,"wait_ms":60000`))
		synctest.Wait()
		s.kernel.WakeUp(schema.Ipc) // there is no message
		s.kernel.WakeUp(schema.Memory)
		expectNothing(t, first)
		expectNothing(t, second)
		before := time.Now()
		come.Store(true)
		s.kernel.WakeUp(schema.Ipc)
		expect(t, first, "a true")
		expect(t, second, "b true")
		if waited := time.Since(before); waited != 0 {
			t.Errorf("woken after %s", waited)
		}
	})
}

// TestNotWoken shows that a message for another process wakes no call.
func TestNotWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		waiter, sender := s.connect(), s.connect()
		waiter.send(receive("a", `"pid":8,"wait_ms":60000`))
		synctest.Wait()
		sender.send(sendMsg("b", "1"))
		expect(t, sender, "b true")
		expectNothing(t, waiter)
	})
}

// TestWaitEnds shows that a call waits as long as it requested, also if it was woken without a match, and is then answered.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		finals := 0
		states[schema.Ipc].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if in, ok := call.Input.(*schema.SendMsgInput); ok {
				return kernel.Result{Data: []byte("true"), Wakes: []int64{in.ReceiverPID}}, true, nil
			}
			if call.Final {
				finals++
				return kernel.Result{Data: []byte("[]")}, true, nil
			}
			return kernel.Result{Wait: time.Minute}, true, nil
		}
		s := startWith(t, states.domains())
		waiter, sender := s.connect(), s.connect()
		begun := time.Now()
		waiter.send(minute("a"))
		for range 5 {
			time.Sleep(11 * time.Second)
			sender.send(sendMsg("b", "1")) // each wakes it without a match
			expect(t, sender, "b true")
			expectNothing(t, waiter)
		}
		if got := waiter.next(); got.String() != "a []" {
			t.Errorf("answer %s", got)
		}
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("waited %s, want a minute", waited)
		}
		if finals != 1 {
			t.Errorf("the last decision was made %d times", finals)
		}
	})
}

// TestWaitingBehindSteps shows that a waiting call also times out, and is interrupted, while its domain is busy with
// another call's steps.
func TestWaitingBehindSteps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		act  func(s *system, waiter *client)
		want []string
	}{
		{"time is up", func(*system, *client) { time.Sleep(2 * time.Minute) }, []string{`a ["open-1 Ipc.Broadcast"]`}},
		{"interrupted", func(_ *system, c *client) { c.link.Interrupt() }, []string{"a 503"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				mailboxes(states)
				held := make(chan struct{})
				states[schema.Capability].apply = func(*kernel.Call) { <-held }
				usual := states[schema.Ipc].decide
				states[schema.Ipc].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
					if _, ok := call.Input.(*schema.BroadcastInput); ok {
						return kernel.Result{Data: []byte("{}"), Steps: []schema.Request{
							schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{1}}),
							schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{1}}),
						}}, true, nil
					}
					return usual(call, applied)
				}
				s := startWith(t, states.domains())
				waiter, busy := s.connect(), s.connect()
				waiter.send(minute("a"))
				synctest.Wait()
				busy.send(command("b", "Ipc.Broadcast", `{"payload":1}`))
				synctest.Wait()
				test.act(s, waiter)
				synctest.Wait()
				close(held)
				expect(t, busy, "b {}")
				expect(t, waiter, test.want...)
				s.endCleanly()
			})
		})
	}
}

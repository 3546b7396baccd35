package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
)

// asking is a kernel that asks before calls of pid 7 whose word begins with "ask", and before its subscriptions.
type asking struct {
	*system
	approvals *approval.Domain
	states    recorders
	operator  *client
	ids       int
}

const stands = 5 * time.Minute

func startAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{approvals: approval.New(nobody{}), states: newRecorders()}
	domains := a.states.domains()
	domains[schema.Approval], domains[schema.Ipc] = a.approvals, ipc.New(ipc.Options{})
	policy := func(call *kernel.Call) kernel.Verdict {
		if call.Inquiry = nil; call.PID == 7 && (strings.HasPrefix(word(call), "ask") || call.Syscall == schema.IPCSubscribe.Row()) {
			call.Inquiry = &kernel.Inquiry{Rule: "careful", Policy: "hash", Stands: stands, Data: schema.AppendString(nil, word(call))}
		}
		return kernel.Verdict{}
	}
	a.system = startHosting(t, faultfs.NewDisk(), domains, idempotency.New(), textLog, actors.Hosting{}, kernel.Gate{Policy: policy, Approval: a.approvals.Stage})
	a.approvals.Serve(approval.Shell{Ask: a.kernel.Ask, Repeats: a.kernel.Repeats, Answered: a.kernel.Answered, Raised: func(*approval.Approval) {}, Wait: patience})
	a.operator = a.connect()
	return a
}

func (a *asking) agent() *client {
	return a.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
}

// decide answers a question.
func (a *asking) decide(id, decision, more string) answer {
	a.t.Helper()
	a.ids++
	a.operator.send(command(fmt.Sprint("d", a.ids), "Approval.Decide", `{"id":"`+id+`","decision":"`+decision+`"`+more+`}`))
	out := a.operator.next()
	synctest.Wait()
	return out
}

// ran returns the words of the calls in the journal that have run, with what allowed them.
func (a *asking) ran() (all []string) {
	a.t.Helper()
	for _, e := range a.entries() {
		if outcome, _ := schema.DecodeOutcome([]byte(e.Outcome)); e.Type == "Memory.Set" && outcome.Err == nil {
			let := ""
			if l := outcome.Let; l != nil {
				let = " " + l.Approval + " " + l.Rule + " " + l.Policy
			}
			all = append(all, e.ID+let)
		}
	}
	return all
}

func (a *asking) wantRan(want ...string) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.ran()); diff != "" {
		a.t.Errorf("calls that ran (-want +got):\n%s", diff)
	}
}

// TestApprovedOnce shows that an approval allows one call: the first of those that wait for it. The others wait for the
// next approval. Other calls of the connection keep their order.
func TestApprovedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		one, two := a.agent(), a.agent()
		one.send(set("a", "x"), set("b", "ask-1"), set("c", "ask-1"), set("d", "y"))
		expect(t, one, "a 1")
		two.send(set("e", "ask-1"))
		synctest.Wait()
		a.decide("q-1", "approve", "")
		expect(t, one, "b 2")
		a.decide("q-2", "approve", "")
		first := two.pending()
		if len(first) != 1 {
			expect(t, one, "c 3", "d 4")
			a.decide("q-3", "approve", "")
			expect(t, two, "e 5")
			a.wantRan("a", "b q-1 careful hash", "c q-2 careful hash", "d", "e q-3 careful hash")
			return
		}
		a.decide("q-3", "approve", "")
		expect(t, one, "c 4", "d 5")
		a.wantRan("a", "b q-1 careful hash", "e q-2 careful hash", "c q-3 careful hash", "d")
	})
}

// TestApprovalExpires shows that an expired question is asked again, and cannot be answered.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		c := a.agent()
		c.send(set("a", "ask"))
		c.next()
		time.Sleep(stands - patience - 10*time.Second)
		begun := time.Now()
		c.send(set("b", "ask")) // for the 10 seconds that are left
		if got := c.next(); got.Code != "425" || !strings.Contains(got.Text, "approval q-2") || time.Since(begun) != 10*time.Second {
			t.Errorf("answered after %s: %s", time.Since(begun), got.Text)
		}
		if got := a.decide("q-1", "approve", ""); got.Code != "409" || !strings.Contains(got.Text, "expired") {
			t.Errorf("an answer to an expired question: %s", got.Text)
		}
		a.decide("q-2", "approve", "")
		time.Sleep(stands)
		c.send(set("c", "ask")) // the approval has expired as well
		if got := c.next(); got.Code != "425" || !strings.Contains(got.Text, "approval q-3") {
			t.Errorf("a call after its approval has expired: %s", got.Text)
		}
		a.wantRan()
	})
}

// TestApprovedFor shows that an approval for a time admits every such call until then, and no other.
func TestApprovedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		c := a.agent()
		c.send(set("a", "ask"))
		synctest.Wait()
		a.decide("q-1", "approve", `,"for_seconds":3600`)
		expect(t, c, "a 1")
		time.Sleep(time.Hour - time.Second)
		c.send(set("b", "ask"), set("c", "ask"))
		expect(t, c, "b 2", "c 3")
		time.Sleep(time.Second)
		c.send(set("d", "ask"))
		synctest.Wait()
		a.decide("q-2", "refuse", `,"why":"not twice"`)
		if got := c.next(); got.Code != "403" || !strings.Contains(got.Text, "not twice") {
			t.Errorf("refused: %s", got.Text)
		}
		c.send(set("e", "ask"))
		expect(t, c, "e 403")
		a.wantRan("a q-1 careful hash", "b q-1 careful hash", "c q-1 careful hash")
	})
}

// TestApprovedQuery shows that queries can need approval too, and that a failure or a repetition does not use it up.
func TestApprovedQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		c, failing := a.agent(), true
		a.states[schema.Memory].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if failing && word(call) == "ask" {
				return kernel.Result{}, false, fmt.Errorf("not now")
			}
			return kernel.Result{}, false, nil
		}
		c.send(keyed("k", set("a", "ask")))
		synctest.Wait()
		a.decide("q-1", "approve", "")
		expect(t, c, "a 500")
		failing = false
		c.send(keyed("k", set("b", "ask")))
		expect(t, c, "b 1")
		c.send(keyed("k", set("r", "ask"))) // it does nothing
		expect(t, c, "r 1")
		c.send(keyed("k", set("o", "ask-other")))
		synctest.Wait()
		a.decide("q-2", "approve", "")
		expect(t, c, "o 409")
		c.send(query("c", "Memory.Get", `{"key":"ask"}`))
		synctest.Wait()
		a.decide("q-3", "approve", "")
		if got := c.next().String(); got != `c "ask"` {
			t.Errorf("got %s", got)
		}
		a.wantRan("b q-1 careful hash", "r")
	})
}

// TestApprovedSubscription shows that an approval is valid as long as its subscription.
func TestApprovedSubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		a.kernel.Recover([]schema.Request{schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{7}})})
		follower := a.agent()
		follower.send(subscribe("s", ""))
		synctest.Wait()
		a.decide("q-1", "approve", "")
		follower.take(1)
		for i := range 3 {
			a.operator.send(sendMsg(fmt.Sprint("m", i), fmt.Sprint(i)))
			a.operator.take(1)
			if got := follower.next(); !strings.Contains(string(got.Data), fmt.Sprintf(`"payload":%d`, i)) {
				t.Errorf("pushed %s", got.Data)
			}
		}
	})
}

// TestApprovalLost shows the effect of a full disk: a question is asked again, and an approved call runs at most once.
func TestApprovalLost(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{`"type":"Approval.Requested"`, `"type":"Approval.Use"`, `"type":"Approval.Decide"`} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := startAsking(t)
				c := a.agent()
				a.room.fullOnce(syscall.ENOSPC, lost)
				c.send(set("a", "ask"))
				synctest.Wait()
				a.decide("q-1", "approve", "")
				if a.room.refused() == 0 {
					t.Fatal("no write was refused: the test shows nothing")
				}
				a.operator.send(ping("p", "1")) // after it, the journal can be written again
				a.operator.take(1)
				synctest.Wait()
				if got := show(c.pending()); !slices.Equal(got, []string{"a 503"}) || len(a.ran()) > 0 {
					t.Errorf("answers %q; ran %q", got, a.ran())
				}
				c.send(set("b", "ask"))
				synctest.Wait()
				a.operator.send(query("l", "Approval.List", `{}`))
				out, err := schema.ApprovalList.Decode(a.operator.next().Data)
				if err != nil || len(out.Approvals) != 1 {
					t.Fatalf("%v, %+v", err, out)
				}
				if one := out.Approvals[0]; one.State == schema.ApprovalWaiting {
					a.decide(one.ID, "approve", "")
				}
				expect(t, c, "b 1")
				if got := a.ran(); len(got) != 1 || !strings.HasPrefix(got[0], "b q-") {
					t.Errorf("ran %q", got)
				}
				if err := a.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestApprovedSubscriptionEnds shows that a subscription that was approved for a time is asked about again afterwards, with
// the data of the call.
func TestApprovedSubscriptionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := startAsking(t)
		a.kernel.Recover([]schema.Request{schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{7}})})
		follower := a.agent()
		follower.send(subscribe("s", ""))
		synctest.Wait()
		a.decide("q-1", "approve", `,"for_seconds":60`)
		follower.take(1)
		time.Sleep(time.Minute)
		a.operator.send(sendMsg("m", "1"))
		a.operator.take(1)
		synctest.Wait()
		expectNothing(t, follower)
		a.operator.send(query("l", "Approval.List", `{"state":"waiting"}`))
		out, err := schema.ApprovalList.Decode(a.operator.next().Data)
		if err != nil || len(out.Approvals) != 1 || string(out.Approvals[0].Data) != `{"pid":7}` {
			t.Fatalf("%v, %+v", err, out)
		}
		a.decide(out.Approvals[0].ID, "approve", "")
		if got := follower.next(); !strings.Contains(string(got.Data), `"payload":1`) {
			t.Errorf("pushed %s", got.Data)
		}
	})
}

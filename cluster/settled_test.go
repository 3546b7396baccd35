package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// anotherHost is a host of beta that answers as body says: with a session where one is asked for, and with that body.
func anotherHost(t *testing.T, body func(request string) string) (from *cluster.Node, sender *recorder) {
	t.Helper()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	handleRequests(t, join(t, b, "beta", beta).conn, "beta", func(m *nats.Msg) {
		text := `{"from":"beta","session":"s","number":0}`
		if !strings.Contains(string(m.Data), `"session":""`) {
			text = body(string(m.Data))
		}
		reply(t, beta, m, text)
	})
	return linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
}

// A host that refuses a request says nothing about a letter or a call that was sent: another host may have led the kernel and done it. It
// stays until the kernel has an outcome.
func TestRefusedRequestsSettleNothing(t *testing.T) {
	t.Parallel()
	for _, id := range []fault.ID{fault.ClusterReplayed, fault.ClusterSigned, fault.ClusterNoKernel, fault.ClusterRequest, fault.KernelInternal} {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			refusals := new(atomic.Int64)
			from, sender := anotherHost(t, func(request string) string {
				if refusals.Add(1) <= 8 {
					return fmt.Sprintf(`{"from":"beta","session":"s","number":0,"error":{"id":%q,"code":%d,"message":"no"}}`, id, id.New("no").Code())
				}
				if strings.Contains(request, `"errand"`) {
					return `{"from":"beta","session":"s","number":0,"data":{"child_pid":1,"child_agent_id":"x"}}`
				}
				return `{"from":"beta","session":"s","number":0,"outcomes":[{"msg_id":1,"status":"DELIVERED"}]}`
			})
			from.Link().Post(letter(1, `1`))
			from.Link().Begin(&schema.Errand{Number: 1, Kernel: "beta", Spawn: &schema.SpawnInput{ChildAgentID: "child"}})
			if status, _, err := from.Link().Wait(testkit.Context(t), 1); err != nil || status != schema.MailQueued && status != schema.MailDelivered {
				t.Errorf("the letter: %s, %v", status, err)
			}
			if data, err, ended := from.Link().Outcome(testkit.Context(t), 1, 1); err != nil || !ended || !strings.Contains(string(data), `"child_pid":1`) {
				t.Errorf("the call: %s, %v, %v", data, err, ended)
			}
			testkit.Eventually(t, "the letter is settled", func() bool { return sender.has(&sender.settled, schema.MailDelivered) })
		})
	}
}

// A letter that is sent again is delivered if the record has it, whatever the kernel would make of it now.
func TestTakenStaysDelivered(t *testing.T) {
	t.Parallel()
	for want, taken := range map[string]bool{schema.MailRefused: false, schema.MailDelivered: true} {
		alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", `allow="Syscall.SendMsg"`)
		beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
		b := testbus.Start(t, lineOfAlpha, lineOfBeta)
		members := lineOfAlpha + "\n" + lineOfBeta + "\n"
		_, receiver := linked(t, b, "beta", beta, members)
		asked := new(atomic.Int64)
		receiver.judges(taken, func(*schema.AcceptInput, func()) error {
			if asked.Add(1) == 1 {
				return fault.ClusterAway.New("not acknowledged in time")
			}
			return fault.CapabilityDenied.New("not any more")
		})
		from, sender := linked(t, b, "alpha", alpha, members)
		from.Link().Post(letter(1, `1`))
		testkit.Eventually(t, "the letter is "+want, func() bool { return sender.has(&sender.settled, want) })
	}
}

// A letter that waits for a decision of people delays the letters for its process only, and those keep their order.
func TestWaitingDelaysItsReceiver(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", `allow="Syscall.SendMsg"`)
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	members := lineOfAlpha + "\n" + lineOfBeta + "\n"
	_, receiver := linked(t, b, "beta", beta, members)
	decided := make(chan struct{})
	receiver.judges(false, func(in *schema.AcceptInput, waits func()) error {
		if in.ReceiverPID == 1 {
			waits()
			<-decided
		}
		return nil
	})
	from, sender := linked(t, b, "alpha", alpha, members)
	post := func(id, to int64) {
		l := letter(id, fmt.Sprint(id))
		l.ReceiverPID = to
		from.Link().Post(l)
	}
	post(1, 1)
	for id := int64(2); id < 200; id++ {
		post(id, 1+id%20)
	}
	others := func() (n int) {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		return len(receiver.accepted)
	}
	testkit.Eventually(t, "all other letters arrive", func() bool { return others() == 189 })
	close(decided)
	testkit.Eventually(t, "all letters are settled", func() bool {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		return len(sender.settled) == 199
	})
	if got := receiver.accepted[189:]; !slices.Equal(got, []string{"1", "20", "40", "60", "80", "100", "120", "140", "160", "180"}) {
		t.Errorf("the letters that waited arrive as %q", got)
	}
}

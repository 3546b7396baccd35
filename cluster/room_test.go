package cluster_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A bus carries less than before. A letter that no longer passes is settled with an error if it was never sent. One that was sent may have
// arrived, so it waits, and delays the letters for its process only, until the operator drops it.
func TestBusCarriesLess(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	host := join(t, b, "beta", beta)
	long := `"` + strings.Repeat("x", 30<<10) + `"`
	arrived := make(chan struct{}, 8)
	handleRequests(t, host.conn, "beta", func(m *nats.Msg) {
		switch text := string(m.Data); {
		case strings.Contains(text, `"session":""`):
			reply(t, beta, m, `{"from":"beta","session":"s","number":0}`)
		case strings.Contains(text, long):
			arrived <- struct{}{} // the answer is lost
			reply(t, beta, m, `{"from":"beta","session":"s","number":0}`)
		default:
			var list []string
			for _, id := range []string{"2", "3"} {
				if strings.Contains(text, `"msg_id":`+id+`,`) {
					list = append(list, `{"msg_id":`+id+`,"status":"DELIVERED"}`)
				}
			}
			reply(t, beta, m, `{"from":"beta","session":"s","number":0,"outcomes":[`+strings.Join(list, ",")+`]}`)
		}
	})
	from, sender := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	from.Link().Post(letter(1, long))
	testkit.Receive(t, arrived, "the long letter")
	b.Stop()
	testkit.Eventually(t, "alpha notices", func() bool { return !from.Status().Connected })
	never := letter(4, long)
	never.ReceiverPID = 4
	from.Link().Post(never)
	b.Payload = 2 * cluster.MinPayload
	b.Restart()
	testkit.Eventually(t, "the letter that was never sent is settled", func() bool { return sender.has(&sender.settled, schema.MailRefused) })
	if why := from.Link().Carries(letter(5, long)); why == nil || why.ID != fault.ClusterTooLarge {
		t.Errorf("a letter of 30 KB: %v", why)
	}
	other := letter(2, `2`)
	other.ReceiverPID = 2
	from.Link().Post(letter(3, `3`))
	from.Link().Post(other)
	testkit.Eventually(t, "the letter for another process arrives", func() bool { return sender.has(&sender.settled, schema.MailRefused, schema.MailDelivered) })
	list := from.Queue().Messages
	if len(list) != 2 || list[0].MsgID != 1 || !list[0].Sent || !strings.Contains(list[0].Reason, "the bus carries") || list[1].MsgID != 3 {
		t.Errorf("%+v", list)
	}
	if out, err := from.Link().Drop(1); err != nil || !out.Sent || out.Kernel != "beta" || out.ReceiverPID != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	testkit.Eventually(t, "the letter behind it arrives", func() bool {
		return sender.has(&sender.settled, schema.MailRefused, schema.MailDelivered, schema.MailDropped, schema.MailDelivered)
	})
	if _, err := from.Link().Drop(1); err == nil {
		t.Error("it was dropped twice")
	}
}

package mail_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// TestMailRate measures the messages per second between two kernels, from senders that each wait for an answer, and the
// latency of one. Each sender has a receiver.
func TestMailRate(t *testing.T) {
	if os.Getenv("PWOS_LONG") == "" {
		t.Skip("only measures: needs PWOS_LONG=1")
	}
	alpha, beta, _ := pair(t, mayMail, mayMail)
	reached(t, alpha, beta)
	const each = 400
	for _, senders := range []int{1, 8, 32} {
		var all sync.WaitGroup
		var mu sync.Mutex
		var times []time.Duration
		begun := time.Now()
		for i := range senders {
			one, two := alpha.spawn(fmt.Sprintf("sender-%d-%d", senders, i)), beta.spawn(fmt.Sprintf("receiver-%d-%d", senders, i))
			from := testkernel.Dial(t, alpha.place.RuntimeDir())
			all.Go(func() {
				for i := range each {
					in := &schema.SendMsgInput{ReceiverPID: two, ReceiverKernel: new("beta"), Payload: schema.Value(`"a message"`)}
					in.PID = &one
					before := time.Now()
					if out, err := client.Call(testkit.Context(t), from, schema.SyscallSendMsg, in); err != nil || out.Status != schema.MailDelivered {
						t.Errorf("%+v, %v", out, err)
						return
					}
					mu.Lock()
					times = append(times, time.Since(before))
					mu.Unlock()
					if i%40 == 39 {
						beta.mail(two)
					}
				}
			})
		}
		all.Wait()
		took := time.Since(begun)
		if len(times) == 0 {
			t.Fatal("no message was sent")
		}
		slices.Sort(times)
		t.Logf("%d senders: %.0f messages a second, p50 %v, p99 %v", senders, float64(len(times))/took.Seconds(),
			times[len(times)/2].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond))
	}
}

package mail_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const mayMail = `allow="Syscall.SendMsg"`

// A message to a process of another kernel is in its mailbox when the call is answered, with its origin.
func TestMail(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayMail, mayMail)
	reached(t, alpha, beta)
	one, two := alpha.spawn("one"), beta.spawn("two")
	for i := range 5 {
		alpha.sent("DELIVERED", one, "beta", two, strconv.Itoa(i))
	}
	alpha.sent("DELIVERED", 0, "beta", 0, `"to the operator"`)
	beta.sent("DELIVERED", two, "alpha", one, `"back"`)
	from := strconv.FormatInt(one, 10) + "@alpha "
	if got, want := beta.mail(two), []string{from + "0", from + "1", from + "2", from + "3", from + "4"}; !slices.Equal(got, want) {
		t.Errorf("beta: %q, want %q", got, want)
	}
	if got := beta.mail(0); !slices.Equal(got, []string{`0@alpha "to the operator"`}) {
		t.Errorf("beta's operator: %q", got)
	}
	if got, want := alpha.mail(one), []string{strconv.FormatInt(two, 10) + `@beta "back"`}; !slices.Equal(got, want) {
		t.Errorf("alpha: %q, want %q", got, want)
	}
}

// A message that cannot be sent has one clear error.
func TestMailRefused(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayMail, "")
	reached(t, alpha, beta)
	one, two := alpha.spawn("one"), beta.spawn("two")
	alpha.refused(fault.ClusterSelf, one, "alpha", one, `1`)
	alpha.refused(fault.ClusterNoKernel, one, "gamma", two, `1`)
	alpha.refused(fault.IpcNoMailbox, one, "beta", 4711, `1`)
	beta.refused(fault.CapabilityDenied, two, "alpha", one, `1`) // its line has no options
	for i := range 50 {
		alpha.sent("DELIVERED", one, "beta", two, strconv.Itoa(i))
	}
	alpha.refused(fault.IpcMailboxFull, one, "beta", two, `"one too many"`)
	if got := len(beta.mail(two)); got != 50 {
		t.Errorf("beta has %d messages", got)
	}
	alpha.sent("DELIVERED", one, "beta", two, `"room again"`)
}

// Messages to a kernel that does not run are queued, and delivered once and in order when it runs again, also if this
// kernel, or the bus, was restarted meanwhile.
func TestQueued(t *testing.T) {
	t.Parallel()
	alpha, beta, bus := pair(t, mayMail, mayMail)
	reached(t, alpha, beta)
	one, two := alpha.spawn("one"), beta.spawn("two")
	var want []string
	send := func(status string, n int) {
		for range n {
			alpha.sent(status, one, "beta", two, strconv.Itoa(len(want)))
			want = append(want, strconv.FormatInt(one, 10)+"@alpha "+strconv.Itoa(len(want)))
		}
	}
	send("DELIVERED", 2)
	beta.end()
	send("QUEUED", 2)
	alpha.end()
	alpha.start()
	reached(t, alpha)
	send("QUEUED", 2)
	bus.Stop()
	send("QUEUED", 2)
	bus.Restart()
	beta.start()
	var got []string
	testkit.Eventually(t, "all messages arrive", func() bool {
		got = append(got, beta.mail(two)...)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	testkit.Eventually(t, "alpha knows", func() bool { return alpha.recorded("Ipc.Settle") == len(want) })
	send("DELIVERED", 1)
}

// A queued message that expires before the other kernel runs again is not delivered, and the journal says so.
func TestQueuedExpires(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayMail, mayMail)
	reached(t, alpha, beta)
	two := beta.spawn("two")
	beta.end()
	send := func(payload string, expires *int64) {
		in := &schema.SendMsgInput{ReceiverPID: two, ReceiverKernel: new("beta"), Payload: schema.Value(payload), ExpiresAtTick: expires}
		out := testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.SyscallSendMsg, in))(t)
		if out.Status != "QUEUED" {
			t.Fatalf("%s: %+v", payload, out)
		}
	}
	tick := testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.ClockGet, &schema.ClockGetInput{}))(t).Tick
	send(`"early"`, new(tick+1000))
	send(`"late"`, nil)
	testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.ClockAdvance, &schema.ClockAdvanceInput{Ticks: 2000}))(t)
	beta.start()
	var got []string
	testkit.Eventually(t, "the other message arrives", func() bool {
		got = append(got, beta.mail(two)...)
		return len(got) > 0
	})
	if !slices.Equal(got, []string{`0@alpha "late"`}) {
		t.Errorf("%q", got)
	}
	testkit.Eventually(t, "alpha records both outcomes", func() bool {
		text := alpha.place.Journal(t)
		return strings.Contains(text, `"status":"EXPIRED"`) && alpha.recorded("Ipc.Settle") == 2
	})
}

// A kernel whose line names an origin can reach the processes of that origin, and the operator.
func TestMailOrigin(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayMail+`,origin="https://a.example/"`, mayMail)
	reached(t, alpha, beta)
	one, two := alpha.spawn("one"), beta.spawn("two")
	alpha.refused(fault.IpcNoMailbox, one, "beta", two, `1`)
	alpha.sent("DELIVERED", one, "beta", 0, `2`)
	beta.sent("DELIVERED", two, "alpha", one, `3`)
}

package mail_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sendLong sends a message with a correlation of a length as a process.
func (n *node) sendLong(as, to int64, payload string, correlation int) (string, error) {
	n.t.Helper()
	in := &schema.SendMsgInput{ReceiverPID: to, ReceiverKernel: new("beta"), Payload: schema.Value(payload)}
	in.PID = &as
	m := schema.Message{Kind: schema.KindCommand, Type: schema.SyscallSendMsg.Type, Data: testkit.Value(schema.SyscallSendMsg.Encode(in))(n.t)}
	m.Meta.Correlation = strings.Repeat("c", correlation)
	reply, err := n.Do(testkit.Context(n.t), m)
	if err != nil {
		return "", err
	}
	return testkit.Value(schema.SyscallSendMsg.Decode(reply.Data))(n.t).Status, nil
}

// TestMailLong: messages whose metadata is long wait for a kernel that is away, more of them than the bus carries at once, and arrive when it
// is back, in the order of their senders. One that the bus does not carry is refused at once, and stops no other. The copies of the journals
// are complete. The bus carries as much as pwos-bus does, 64 KB, or as little as kernels work with.
func TestMailLong(t *testing.T) {
	t.Parallel()
	for _, payload := range []int32{0, 64 << 10, cluster.MinPayload} {
		t.Run(fmt.Sprint(payload), func(t *testing.T) {
			t.Parallel()
			alpha, beta, bus := pair(t, mayMail, mayMail+`,role="viewer"`)
			bus.Stop()
			bus.Payload = payload
			bus.Restart()
			reached(t, alpha, beta)
			length := 7 << 10
			if payload == cluster.MinPayload {
				length = 6 << 10
			}
			var agents, readers []int64
			for i := range 4 {
				agents, readers = append(agents, alpha.spawn(fmt.Sprint("agent", i))), append(readers, beta.spawn(fmt.Sprint("reader", i)))
			}
			beta.end()
			var want []string
			for i := range 50 {
				for j, agent := range agents {
					if status, err := alpha.sendLong(agent, readers[j], strconv.Itoa(i), length); err != nil || status != schema.MailQueued {
						t.Fatal(status, err)
					}
				}
				want = append(want, strconv.Itoa(i))
			}
			if _, err := alpha.sendLong(0, readers[0], `"long"`, 10<<10); errors.Is(err, fault.ClusterTooLarge) != (payload == cluster.MinPayload) {
				t.Errorf("a message of 10 KB: %v", err)
			}
			for _, agent := range agents {
				testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.SyscallTerminate, &schema.TerminateInput{TargetPID: agent}))(t)
			}
			random := make([]byte, 10<<10) // does not get shorter by compression
			testkit.Value(rand.Read(random))(t)
			value := schema.Value(strconv.Quote(base64.StdEncoding.EncodeToString(random)))
			testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.MemorySet, &schema.MemorySetInput{Key: "long", Value: value}))(t)
			beta.start()
			for j, reader := range readers {
				var got []string
				testkit.Eventually(t, "all messages arrive", func() bool {
					for _, m := range beta.mail(reader) {
						if _, text, _ := strings.Cut(m, " "); text != `"long"` {
							got = append(got, text)
						}
					}
					return len(got) >= len(want)
				})
				if !slices.Equal(got, want) {
					t.Errorf("reader %d: %q", j, got)
				}
			}
			testkit.Eventually(t, "the copy of alpha's journal is complete", func() bool {
				s := testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.ClusterStatus, &schema.ClusterStatusInput{}))(t)
				return s.Copied > 0 && s.Behind == 0 && s.Members[0].Queued == 0
			})
		})
	}
}

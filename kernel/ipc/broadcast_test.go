package ipc_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema/fault"
)

// crowd has mailboxes 2, 3, 5 and 7: 3 is full, 7 is denied the intent "x", and rules deny everything from 9 and the
// intent "none".
func crowd(t domaintest.TB) *shell {
	s := newShell(t, ipc.Options{Capacity: 1, Rules: []ipc.Rule{
		{Intent: of("x"), ReceiverPID: of(int64(7))}, {SenderPID: of(int64(9))}, {Intent: of("none")},
	}}, 7, 3, 5, 2)
	s.send(2, 3, `"before"`)
	return s
}

// TestBroadcast reaches every mailbox except the sender's, ascending; neither list has a denied receiver.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from int64
		data string
		want string
		to   []int64
	}{
		{"process", 5, `{"payload":1}`, `{"delivered":[2,7],"mailbox_full":[3]}`, []int64{2, 7}},
		{"operator", 0, `{"payload":1}`, `{"delivered":[2,5,7],"mailbox_full":[3]}`, []int64{2, 5, 7}},
		{"denied one", 2, `{"payload":1,"intent":"x"}`, `{"delivered":[5],"mailbox_full":[3]}`, []int64{5}},
		{"denied all", 9, `{"payload":1}`, `{"delivered":[],"mailbox_full":[]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := crowd(t)
			if got := s.must(c.from, "Ipc.Broadcast", c.data); got != c.want {
				t.Errorf("got %s", got)
			}
			s.expect(t, c.to)
		})
	}
}

// expect checks that exactly these processes were woken and have message 2.
func (s *shell) expect(t *testing.T, to []int64) {
	t.Helper()
	if !slices.Equal(s.last.Wakes, to) {
		t.Errorf("wakes %v", s.last.Wakes)
	}
	s.check()
	for _, pid := range []int64{2, 3, 5, 7} {
		got := s.messages(s.must(pid, "Ipc.Receive", `{"max":9}`))
		if slices.Contains(to, pid) != (len(got) == 1 && got[0].MsgID == 2 && got[0].ReceiverPID == pid) {
			t.Errorf("pid %d received %+v", pid, got)
		}
	}
	s.check()
}

// TestSendToAll: receiver 0 is a broadcast if the operator sends, with an answer of its own.
func TestSendToAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from int64
		data string
		want string
		to   []int64
	}{
		{"some", 0, `{"receiver_pid":0,"payload":1,"priority":"URGENT","expires_at_tick":9}`, `{"receiver_pid":0,"status":"DELIVERED","msg_id":2}`, []int64{2, 5, 7}},
		{"expired", 5, `{"receiver_pid":0,"payload":1,"expires_at_tick":0}`, `{"receiver_pid":0,"status":"EXPIRED","msg_id":2,"reason":"it expired after tick 0, and it is tick 1"}`, nil},
		{"denied all", 0, `{"receiver_pid":0,"payload":1,"intent":"none"}`, `{"receiver_pid":0,"status":"BLOCKED_BY_GOVERNANCE","msg_id":2,"reason":"governance denies it to all 4 processes, rule 3 of the configuration first"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := crowd(t)
			s.tick = 1
			if got := s.must(c.from, "Syscall.SendMsg", c.data); got != c.want {
				t.Errorf("got %s", got)
			}
			s.expect(t, c.to)
		})
	}
}

// TestSendToAllFails: no mailbox takes the message, and not only because it is denied.
func TestSendToAllFails(t *testing.T) {
	t.Parallel()
	const data = `{"receiver_pid":0,"payload":1}`
	s := newShell(t, ipc.Options{Capacity: 1}, 1)
	s.internal("Ipc.Close", 1)
	if _, err := s.run(0, "Syscall.SendMsg", data); err == nil || err.Kind != fault.NotFound {
		t.Errorf("no other mailbox: %v", err)
	}
	s.internal("Ipc.Open", 1)
	s.send(1, 1, "1")
	if _, err := s.run(0, "Syscall.SendMsg", data); err == nil || err.Kind != fault.QuotaExceeded || !strings.HasPrefix(err.Text(), "MAILBOX_FULL: all 1 mailboxes") {
		t.Errorf("all full: %v", err)
	}
	if got := s.must(1, "Ipc.Broadcast", `{"payload":1}`); got != `{"delivered":[],"mailbox_full":[]}` {
		t.Errorf("a broadcast without receivers: %s", got)
	}
	s.check()
}

// TestStaleAddress: a broadcast that a crash interrupted does not affect the next message.
func TestStaleAddress(t *testing.T) {
	t.Parallel()
	for typ, data := range map[string]string{
		"Ipc.Broadcast": `{"payload":1}`, "Syscall.SendMsg": `{"receiver_pid":2,"payload":1}`,
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, ipc.Options{Rules: []ipc.Rule{{ReceiverPID: of(int64(1))}}}, 1, 2)
			s.internal("Ipc.Address", 1)
			s.check()
			s.must(kernel.Operator, typ, data)
			s.check()
			if after := domaintest.Snapshot(t, s.domain); bytes.Contains(after, []byte("addressed")) {
				t.Errorf("the state still has the step: %s", after)
			}
			got := [][]string{s.payloads(1, `{}`), s.payloads(2, `{}`)}
			if diff := cmp.Diff([][]string{{}, {"1"}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

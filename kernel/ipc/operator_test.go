package ipc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestOperatorsMailbox: an agent's message to 0 goes to the operator only, who receives it like any process; no
// broadcast reaches it. A full mailbox is an error.
func TestOperatorsMailbox(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 2}, 1, 2)
	if got := s.payloads(kernel.Operator, `{}`); len(got) != 0 {
		t.Errorf("before any message: %v", got)
	}
	s.send(1, kernel.Operator, `"done"`)
	if !slices.Equal(s.last.Wakes, []int64{kernel.Operator}) {
		t.Errorf("wakes %v", s.last.Wakes)
	}
	s.must(2, "Ipc.Broadcast", `{"payload":"all"}`)
	s.send(2, kernel.Operator, `"stuck"`)
	if _, err := s.run(1, "Syscall.SendMsg", `{"receiver_pid":0,"payload":1}`); err == nil || err.Kind != fault.QuotaExceeded ||
		!strings.HasPrefix(err.Text(), "MAILBOX_FULL: the operator's mailbox holds 2 messages") {
		t.Errorf("full: %v", err)
	}
	s.check()
	s.domain = s.restored()
	s.origin = "https://other.local/" // an origin with room of its own
	s.send(1, kernel.Operator, `"other"`)
	s.origin = ""
	if _, err := s.run(1, "Syscall.SendMsg", `{"receiver_pid":0,"payload":1}`); err == nil {
		t.Error("after a restart, a full mailbox has room")
	}
	if got := s.payloads(2, `{}`); len(got) != 0 {
		t.Errorf("another agent received %v", got)
	}
	messages := s.messages(s.must(kernel.Operator, "Ipc.Receive", `{"max":1}`))
	if len(messages) != 1 || string(messages[0].Payload) != `"done"` || messages[0].SenderPID != 1 || messages[0].ReceiverPID != kernel.Operator {
		t.Errorf("received %+v", messages)
	}
	if got := s.must(kernel.Operator, "Ipc.Subscribe", `{"ack":true}`); got != `{"receiver_pid":0,"ack":true}` {
		t.Errorf("subscribed: %s", got)
	}
	s.must(kernel.Operator, "Ipc.Deliver", `{"max":9,"ack":true}`)
	if got := s.must(kernel.Operator, "Ipc.Ack", `{"msg_ids":[3]}`); got != `{"acknowledged":[3]}` {
		t.Errorf("acknowledged: %s", got)
	}
	s.check()
}

// TestOldBroadcast: in a journal from before the operator had a mailbox, an agent's message to 0 went to the
// processes that its step names.
func TestOldBroadcast(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2)
	s.internal("Ipc.Address", 2)
	s.journal.Apply(s.domain, s.request(1, "Syscall.SendMsg", `{"receiver_pid":0,"payload":"all"}`), []byte(`{"receiver_pid":0,"status":"DELIVERED","msg_id":1}`))
	if got := s.payloads(2, `{}`); !slices.Equal(got, []string{`"all"`}) {
		t.Errorf("received %v", got)
	}
	if got := s.payloads(kernel.Operator, `{}`); len(got) != 0 {
		t.Errorf("the operator received %v", got)
	}
	s.check()
}

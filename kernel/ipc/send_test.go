package ipc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func of[T any](v T) *T { return &v }

// TestSend: the outcomes of a message to one process.
func TestSend(t *testing.T) {
	t.Parallel()
	rules := []ipc.Rule{
		{Intent: of("rumour")},
		{SenderPID: of(int64(3)), ReceiverPID: of(int64(1))},
		{Intent: of("rumour"), ReceiverPID: of(int64(2))},
		{SenderPID: of(int64(0)), Intent: of("order")},
	}
	for _, c := range []struct {
		name  string
		from  int64
		data  string
		want  string // the answer, or the beginning of the error
		class fault.Kind
	}{
		{name: "delivered", from: 1, data: `{"receiver_pid":2,"payload":null}`, want: `{"receiver_pid":2,"status":"DELIVERED","msg_id":1}`},
		{name: "to itself", from: 1, data: `{"receiver_pid":1,"payload":1}`, want: `{"receiver_pid":1,"status":"DELIVERED","msg_id":1}`},
		{name: "from the operator", from: 0, data: `{"receiver_pid":1,"payload":1}`, want: `{"receiver_pid":1,"status":"DELIVERED","msg_id":1}`},
		{name: "on its last tick", from: 1, data: `{"receiver_pid":2,"payload":1,"expires_at_tick":5}`, want: `{"receiver_pid":2,"status":"DELIVERED","msg_id":1}`},
		{
			name: "too late", from: 1, data: `{"receiver_pid":2,"payload":1,"expires_at_tick":4}`,
			want: `{"receiver_pid":2,"status":"EXPIRED","msg_id":1,"reason":"it expired after tick 4, and it is tick 5"}`,
		},
		{
			name: "denied by intent", from: 1, data: `{"receiver_pid":2,"payload":1,"intent":"rumour"}`,
			want: `{"receiver_pid":2,"status":"BLOCKED_BY_GOVERNANCE","msg_id":1,"reason":"governance rule 1 of the configuration denies it"}`,
		},
		{
			name: "denied by sender and receiver", from: 3, data: `{"receiver_pid":1,"payload":"\"status\":\"DELIVERED\""}`,
			want: `{"receiver_pid":1,"status":"BLOCKED_BY_GOVERNANCE","msg_id":1,"reason":"governance rule 2 of the configuration denies it"}`,
		},
		{
			name: "the operator is denied", from: 0, data: `{"receiver_pid":1,"payload":1,"intent":"order"}`,
			want: `{"receiver_pid":1,"status":"BLOCKED_BY_GOVERNANCE","msg_id":1,"reason":"governance rule 4 of the configuration denies it"}`,
		},
		{name: "another sender", from: 1, data: `{"receiver_pid":1,"payload":1,"intent":"order"}`, want: `{"receiver_pid":1,"status":"DELIVERED","msg_id":1}`},
		{name: "another receiver", from: 3, data: `{"receiver_pid":2,"payload":1}`, want: `{"receiver_pid":2,"status":"DELIVERED","msg_id":1}`},
		{name: "nobody", from: 1, data: `{"receiver_pid":9,"payload":1}`, want: "pid 9 has no mailbox", class: fault.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, ipc.Options{Rules: rules}, 1, 2, 3)
			s.tick = 5
			got, err := s.run(c.from, "Syscall.SendMsg", c.data)
			if c.class != fault.Internal {
				if err == nil || err.Kind != c.class || !strings.HasPrefix(err.Text(), c.want) {
					t.Fatalf("%s, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Fatalf("%s, %v", got, err)
			}
			row, _ := schema.Lookup("Syscall.SendMsg")
			out, err := row.Output().Decode([]byte(got))
			if err != nil {
				t.Fatal(err)
			}
			var wakes []int64
			if answer := out.(*schema.SendMsgOutput); answer.Status == "DELIVERED" {
				wakes = []int64{answer.ReceiverPID}
			}
			if !slices.Equal(s.last.Wakes, wakes) {
				t.Errorf("wakes %v", s.last.Wakes)
			}
			s.check()
			for pid := int64(1); pid <= 3; pid++ {
				if n := len(s.payloads(pid, `{"max":9}`)); (n == 1) != slices.Contains(wakes, pid) {
					t.Errorf("pid %d received %d", pid, n)
				}
			}
		})
	}
}

// TestNumbers: every message has a number of its own, whatever its outcome.
func TestNumbers(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Rules: []ipc.Rule{{Intent: of("no")}}}, 1, 2)
	for i, data := range []string{
		`{"receiver_pid":1,"payload":1}`, `{"receiver_pid":1,"payload":1,"intent":"no"}`,
		`{"receiver_pid":0,"payload":1}`, `{"receiver_pid":2,"payload":1,"intent":"no"}`, `{"receiver_pid":2,"payload":1}`,
	} {
		if got := s.must(1, "Syscall.SendMsg", data); !strings.Contains(got, fmt.Sprintf(`"msg_id":%d`, i+1)) {
			t.Errorf("message %d: %s", i+1, got)
		}
	}
	s.must(1, "Ipc.Broadcast", `{"payload":1}`)
	var numbers []int64
	for _, m := range s.messages(s.must(2, "Ipc.Receive", `{"max":9}`)) {
		numbers = append(numbers, m.MsgID)
	}
	if !slices.Equal(numbers, []int64{5, 6}) {
		t.Errorf("numbers %v", numbers)
	}
	s.check()
}

// TestCapacity: a full mailbox refuses messages; expired ones take no room.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			t.Parallel()
			s := newShell(t, ipc.Options{Capacity: capacity}, 1, 2)
			holds := capacity
			if capacity == 0 {
				holds = 50
			}
			for i := range holds {
				expiry := ""
				if i == 0 {
					expiry = `,"expires_at_tick":3`
				}
				s.must(1, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":2,"payload":%d%s}`, i, expiry))
			}
			full := fmt.Sprintf("MAILBOX_FULL: the mailbox of pid 2 holds %d messages", holds)
			s.tick = 3
			if _, err := s.run(1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":0,"priority":"URGENT"}`); err == nil ||
				err.Kind != fault.QuotaExceeded || !strings.HasPrefix(err.Text(), full) {
				t.Fatalf("got %v", err)
			}
			s.tick = 4
			s.send(1, 2, `"room"`)
			if _, err := s.run(1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":0}`); err == nil {
				t.Error("one message has expired, and two were accepted in its place")
			}
			s.check()
			got := s.payloads(2, `{"max":1000}`)
			if len(got) != holds || got[holds-1] != `"room"` || slices.Contains(got, "0") {
				t.Errorf("received %v", got)
			}
			s.check()
		})
	}
}

// A message's intent must be readable.
func TestIntentWithHiddenCharacters(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 5}, 1, 2)
	for typ, receiver := range map[string]string{"Syscall.SendMsg": `"receiver_pid":2,`, "Ipc.Broadcast": ""} {
		_, err := s.run(1, typ, `{`+receiver+`"intent":"pay\u200b","payload":1}`)
		domaintest.WantError(t, err, fault.InvalidInput,
			"Invalid input: intent must not have the character U+200B, which is not visible or changes how the text around it is shown: leave it out")
	}
}

// TestRefusalsByID: programs decide by the ids of refusals.
func TestRefusalsByID(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 1}, 1, 2)
	s.conn = "c-1"
	s.must(2, "Ipc.Subscribe", `{}`)
	s.send(1, 2, `1`)
	for _, test := range []struct {
		pid       int64
		typ, data string
		want      fault.ID
	}{
		{1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":1}`, fault.IpcMailboxFull},
		{1, "Syscall.SendMsg", `{"receiver_pid":9,"payload":1}`, fault.IpcNoMailbox},
		{1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":1,"intent":"a\u200b"}`, fault.WireInvalidInput},
		{9, "Ipc.Receive", `{}`, fault.IpcNoMailbox},
		{2, "Ipc.Subscribe", `{}`, fault.IpcFollowed},
	} {
		if _, err := s.run(test.pid, test.typ, test.data); err == nil || err.ID != test.want {
			t.Errorf("%s %s as %d: %v, want %s", test.typ, test.data, test.pid, err, test.want)
		}
	}
}

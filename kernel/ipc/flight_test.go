package ipc_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestBackInOrder: returned messages have their old place among the others, urgent ones first; another connection's
// messages in flight stay with it.
func TestBackInOrder(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1)
	send := func(payload, more string) {
		s.must(2, "Syscall.SendMsg", `{"receiver_pid":1,"payload":`+payload+more+`}`)
	}
	send("1", "")
	send("2", `,"intent":"a"`)
	send("3", `,"priority":"URGENT"`)
	send("4", `,"intent":"b"`)
	send("5", `,"intent":"a","priority":"URGENT"`)
	send("6", `,"intent":"a"`)
	s.conn = "c-1"
	if got := s.payloads(1, `{"ack":true,"intent":"a","max":9}`); !slices.Equal(got, []string{"5", "2", "6"}) {
		t.Fatalf("received %v", got)
	}
	s.conn = "c-2"
	if got := s.payloads(1, `{"ack":true,"intent":"b"}`); !slices.Equal(got, []string{"4"}) {
		t.Fatalf("received %v", got)
	}
	send("7", "")
	s.must(0, "Ipc.Return", `{"pids":[1],"conn":"c-1"}`)
	if got := s.payloads(1, `{"max":9}`); !slices.Equal(got, []string{"3", "5", "1", "2", "6", "7"}) {
		t.Errorf("received %v", got)
	}
	s.must(0, "Ipc.Return", `{"pids":[1],"conn":"c-2"}`)
	if got := s.payloads(1, `{"max":9}`); !slices.Equal(got, []string{"4"}) {
		t.Errorf("received %v", got)
	}
	s.check()
}

// TestExpiryOfFlight: a message in flight was received in time, and can be acknowledged at any tick. One that returns
// after its expiry is dropped.
func TestExpiryOfFlight(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 2}, 1)
	s.conn = "c-1"
	for range 2 {
		s.must(2, "Syscall.SendMsg", `{"receiver_pid":1,"payload":1,"expires_at_tick":3}`)
	}
	s.must(1, "Ipc.Receive", `{"ack":true,"max":2}`)
	s.tick = 4
	if _, err := s.run(2, "Syscall.SendMsg", `{"receiver_pid":1,"payload":2}`); err == nil || err.Kind != fault.QuotaExceeded {
		t.Errorf("messages in flight take no room: %v", err)
	}
	if got := s.must(1, "Ipc.Ack", `{"msg_ids":[1]}`); got != `{"acknowledged":[1]}` {
		t.Errorf("acknowledged %s", got)
	}
	s.must(0, "Ipc.Return", `{"pids":[1],"conn":""}`)
	if got := s.must(1, "Ipc.Ack", `{"msg_ids":[2]}`); got != `{"acknowledged":[]}` {
		t.Errorf("acknowledged %s", got)
	}
	for range 2 {
		s.send(2, 1, "3")
	}
	if got := s.payloads(1, `{"max":9}`); !slices.Equal(got, []string{"3", "3"}) {
		t.Errorf("received %v", got)
	}
	s.check()
}

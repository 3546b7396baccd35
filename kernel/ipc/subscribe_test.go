package ipc_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestDeliver: a pushed message equals the received one, names the sending as its cause, and has the sending's
// correlation, after a restart too.
func TestDeliver(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1)
	s.id = "m-1"
	s.send(3, 1, `"first"`)
	s.id = ""
	s.send(3, 1, `"second"`)
	s.domain = s.restored()
	const first = `{"msg_id":1,"sender_pid":3,"receiver_pid":1,"intent":"","payload":"first","priority":"NORMAL","sent_tick":0,"causation":"m-1"}`
	const second = `{"msg_id":2,"sender_pid":3,"receiver_pid":1,"intent":"","payload":"second","priority":"NORMAL","sent_tick":0}`
	if got := s.must(1, "Ipc.Deliver", `{"max":9,"ack":true}`); got != `{"messages":[`+first+","+second+`]}` {
		t.Errorf("delivered %s", got)
	}
	want := []kernel.Event{
		{Type: "Ipc.MessageDelivered", Data: []byte(first), Causation: "m-1"}, {Type: "Ipc.MessageDelivered", Data: []byte(second)},
	}
	if got := s.last.Lasting; !reflect.DeepEqual(got.Events, want) {
		t.Errorf("pushed %s", got.Events)
	}
	if next := s.last.Lasting.Follow; next.Row.Type != "Ipc.Deliver" || !next.Input.(*schema.MailDeliverInput).Ack {
		t.Errorf("what follows is %+v", next)
	}
	s.check()
}

// TestDeliverWaits: with nothing to push, the question waits until something comes, however long.
func TestDeliverWaits(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1)
	if s.final = true; s.must(1, "Ipc.Deliver", `{"max":9,"ack":false}`) != "" || s.last.Wait != kernel.Forever {
		t.Errorf("got %+v", s.last)
	}
	s.send(2, 1, "1")
	if !slices.Equal(s.last.Wakes, []int64{1}) {
		t.Errorf("woken: %v", s.last.Wakes)
	}
	s.internal("Ipc.Close", 1)
	if _, err := s.run(1, "Ipc.Deliver", `{"max":9,"ack":false}`); err == nil || err.Kind != fault.NotFound {
		t.Errorf("a closed mailbox: %v", err)
	}
}

// TestDeliverIsBounded: one push has a bounded number of messages, and fits a line.
func TestDeliverIsBounded(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 1000}, 1)
	s.must(1, "Ipc.Subscribe", `{}`)
	raw, err := schema.Marshal(s.last.Lasting.Follow.Input)
	testkit.Must(t, err)
	for range 100 {
		s.send(2, 1, "1")
	}
	s.must(1, "Ipc.Deliver", string(raw))
	if n := len(s.last.Lasting.Events); n < 2 || n > 64 {
		t.Errorf("%d at once", n)
	}
	long := `"` + strings.Repeat("x", kernel.MaxData/3) + `"`
	for range 9 {
		s.must(2, "Syscall.SendMsg", `{"receiver_pid":1,"priority":"URGENT","payload":`+long+`}`)
	}
	if got := s.must(1, "Ipc.Deliver", string(raw)); len(got) > kernel.MaxData || len(s.last.Lasting.Events) != 2 {
		t.Errorf("%d bytes in %d events", len(got), len(s.last.Lasting.Events))
	}
}

// TestSubscriberIsNamed: a subscriber gets present and new messages until its connection ends; a second one is
// refused until then. The steps of a call belong to its connection.
func TestSubscriberIsNamed(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2)
	s.conn = "c-1"
	back := schema.IPCReturn.With(&schema.MailReturnInput{PIDs: []int64{1}, Conn: "c-1"})
	if got := s.must(1, "Ipc.Subscribe", `{"ack":true}`); got != `{"receiver_pid":1,"ack":true}` || !reflect.DeepEqual(s.last.Lasting.End, &back) {
		t.Errorf("got %s, %+v", got, s.last.Lasting)
	}
	s.send(2, 1, "1")
	s.must(1, "Ipc.Receive", `{}`)
	if s.last.Lasting != nil {
		t.Errorf("a receive leaves %+v", s.last.Lasting)
	}
	s.send(2, 1, "2")
	s.must(1, "Ipc.Receive", `{"ack":true}`)
	if s.last.Lasting == nil || s.last.Lasting.Follow != nil || !reflect.DeepEqual(s.last.Lasting.End, &back) {
		t.Errorf("a receive with ack leaves %+v", s.last.Lasting)
	}
	s.must(1, "Ipc.Receive", `{"ack":true}`)
	if s.last.Lasting != nil {
		t.Errorf("a receive of nothing leaves %+v", s.last.Lasting)
	}
	s.conn = "c-2"
	if _, err := s.run(1, "Ipc.Subscribe", `{}`); err == nil || err.Kind != fault.Conflict || !strings.Contains(err.Text(), "c-1") {
		t.Errorf("a second subscriber: %v", err)
	}
	s.must(0, "Ipc.Return", `{"pids":[1,2,3],"conn":"c-1"}`)
	if !slices.Contains(s.last.Wakes, 1) {
		t.Error("the returned messages wake no receiver")
	}
	s.must(1, "Ipc.Subscribe", `{}`)
	s.check()
}

// TestAbandoned: a start sends one command that ends all subscriptions, and none if there are none.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2, 3)
	if got := s.domain.Abandoned(); got != nil {
		t.Errorf("without subscriptions: %+v", got)
	}
	s.conn = "c-1"
	s.must(1, "Ipc.Subscribe", `{}`)
	s.send(1, 3, "1")
	s.must(3, "Ipc.Receive", `{"ack":true}`)
	s.domain = s.restored()
	steps := s.domain.Abandoned()
	if len(steps) != 1 || !reflect.DeepEqual(steps[0].Input, &schema.MailReturnInput{PIDs: []int64{1, 3}}) {
		t.Fatalf("%+v", steps)
	}
	s.must(0, steps[0].Row.Type, `{"pids":[1,3],"conn":""}`)
	if got := s.domain.Abandoned(); got != nil {
		t.Errorf("afterwards: %+v", got)
	}
	if got := s.payloads(3, `{}`); fmt.Sprint(got) != "[1]" {
		t.Errorf("received %v", got)
	}
	s.check()
}

// TestSnapshotOfFlight: a snapshot does not change while messages are delivered, returned and acknowledged.
func TestSnapshotOfFlight(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1)
	s.conn = "c-1"
	for n := range 9 {
		s.send(2, 1, fmt.Sprint(n))
	}
	var writes []func(func([]byte) error) error
	var want [][]byte
	note := func() {
		writes = append(writes, s.domain.Snapshot())
		want = append(want, domaintest.Snapshot(t, s.domain))
	}
	for _, call := range [][2]string{
		{"Ipc.Receive", `{"max":4,"ack":true}`},
		{"Ipc.Ack", `{"msg_ids":[1]}`},
		{"Ipc.Ack", `{"msg_ids":[3]}`},
		{"Ipc.Receive", `{"max":2,"ack":true}`},
		{"Ipc.Return", `{"pids":[1],"conn":"c-1"}`},
		{"Ipc.Ack", `{"msg_ids":[4,6]}`},
		{"Ipc.Receive", `{"max":9,"ack":true}`},
		{"Ipc.Ack", `{"msg_ids":[9,2,5,7]}`},
	} {
		note()
		s.must(1, call[0], call[1])
	}
	for i, write := range writes {
		var got []byte
		if err := write(func(chunk []byte) error { got = append(got, chunk...); return nil }); err != nil || !bytes.Equal(got, want[i]) {
			t.Errorf("snapshot %d is %s, was %s, %v", i, got, want[i], err)
		}
	}
	s.check()
}

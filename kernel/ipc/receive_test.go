package ipc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestReceive: urgent messages come first, then the others in the order of sending; with an intent, only its
// messages.
func TestReceive(t *testing.T) {
	t.Parallel()
	sent := []string{
		`"payload":1,"intent":"a"`,
		`"payload":2,"priority":"HIGH"`,
		`"payload":3,"intent":"a","priority":"URGENT"`,
		`"payload":4,"intent":"b","priority":"LOW"`,
		`"payload":5,"intent":"b","priority":"URGENT","expires_at_tick":7`,
		`"payload":6,"intent":"a"`,
	}
	for _, c := range []struct {
		name string
		tick int64
		data string
		want []string
		rest []string
	}{
		{"what is there", 0, `{}`, []string{"3", "5", "1", "2", "4", "6"}, []string{}},
		{"one", 0, `{"max":1}`, []string{"3"}, []string{"5", "1", "2", "4", "6"}},
		{"three", 0, `{"max":3}`, []string{"3", "5", "1"}, []string{"2", "4", "6"}},
		{"all", 0, `{"max":1000}`, []string{"3", "5", "1", "2", "4", "6"}, []string{}},
		{"intent", 0, `{"intent":"a","max":2}`, []string{"3", "1"}, []string{"5", "2", "4", "6"}},
		{"one of an intent", 0, `{"intent":"b","max":1}`, []string{"5"}, []string{"3", "1", "2", "4", "6"}},
		{"no intent", 0, `{"intent":"","max":9}`, []string{"2"}, []string{"3", "5", "1", "4", "6"}},
		{"unknown intent", 0, `{"intent":"c"}`, []string{}, []string{"3", "5", "1", "2", "4", "6"}},
		{"last tick", 7, `{"max":2}`, []string{"3", "5"}, []string{"1", "2", "4", "6"}},
		{"expired", 8, `{"max":2}`, []string{"3", "1"}, []string{"2", "4", "6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, ipc.Options{}, 1, 2)
			for _, m := range sent {
				s.must(1, "Syscall.SendMsg", `{"receiver_pid":2,`+m+`}`)
			}
			s.tick = c.tick
			if diff := cmp.Diff(c.want, s.payloads(2, c.data)); diff != "" {
				t.Errorf("received: %s", diff)
			}
			s.check()
			if diff := cmp.Diff(c.rest, s.payloads(2, `{"max":1000}`)); diff != "" {
				t.Errorf("left: %s", diff)
			}
			s.check()
		})
	}
}

// TestMessageWhole: a received message, byte for byte, also from a restored mailbox.
func TestMessageWhole(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2)
	s.tick = 4
	s.must(1, "Syscall.SendMsg", `{"receiver_pid":2,"intent":"q\"ü","payload":{"n": 1.50e2, "s":"\u0041"},"priority":"LOW","expires_at_tick":6}`)
	s.domain = s.restored()
	want := `{"messages":[{"msg_id":1,"sender_pid":1,"receiver_pid":2,"intent":"q\"ü","payload":{"n": 1.50e2, "s":"\u0041"},` +
		`"priority":"LOW","sent_tick":4,"expires_at_tick":6}]}`
	if got := s.must(2, "Ipc.Receive", `{}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.must(2, "Ipc.Receive", `{}`); got != `{"messages":[]}` {
		t.Errorf("got %s", got)
	}
	s.send(2, 1, "1")
	want = `{"messages":[{"msg_id":2,"sender_pid":2,"receiver_pid":1,"intent":"","payload":1,"priority":"NORMAL","sent_tick":4}]}`
	if got := s.must(1, "Ipc.Receive", `{}`); got != want {
		t.Errorf("got %s", got)
	}
}

// TestReceiveFits: a long answer has fewer messages, but at least one.
func TestReceiveFits(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2)
	long, larger := `"`+strings.Repeat("a", 4000)+`"`, `"`+strings.Repeat("b", kernel.MaxData)+`"`
	for _, payload := range []string{long, long, long, long, larger, long} {
		s.send(1, 2, payload)
	}
	for _, want := range [][]string{{long, long, long}, {long}, {larger}, {long}, {}} {
		got := s.payloads(2, `{"max":1000}`)
		if !slices.Equal(got, want) {
			t.Fatalf("received %d messages, want %d", len(got), len(want))
		}
		if n := len(s.last.Data); n > kernel.MaxData && len(want) > 1 {
			t.Errorf("%d bytes", n)
		}
		s.check()
	}
	for _, c := range []struct{ extra, want int }{{0, 2}, {1, 1}} {
		empty := newShell(t, ipc.Options{}, 1)
		empty.send(1, 1, `""`)
		empty.send(1, 1, `""`)
		empty.must(1, "Ipc.Receive", `{"max":2}`)
		fill := kernel.MaxData - len(empty.last.Data) + c.extra
		empty.send(1, 1, `""`)
		empty.send(1, 1, `"`+strings.Repeat("c", fill)+`"`)
		if got := empty.payloads(1, `{"max":2}`); len(got) != c.want {
			t.Errorf("%d bytes beyond: %d messages in %d bytes", c.extra, len(got), len(empty.last.Data))
		}
	}
}

// TestReceiveWaits: an empty mailbox makes the call wait, until it is final.
func TestReceiveWaits(t *testing.T) {
	t.Parallel()
	const data = `{"wait_ms":1500,"intent":"a"}`
	s := newShell(t, ipc.Options{}, 1, 2)
	s.must(2, "Syscall.SendMsg", `{"receiver_pid":2,"payload":1,"intent":"b"}`)
	if got := s.must(2, "Ipc.Receive", data); got != "" || s.last.Wait != 1500*time.Millisecond || s.last.Data != nil {
		t.Errorf("nothing there: %+v", s.last)
	}
	s.final = true
	if got := s.must(2, "Ipc.Receive", data); got != `{"messages":[]}` {
		t.Errorf("at last: %s", got)
	}
	s.final = false
	if got := s.must(2, "Ipc.Receive", `{"wait_ms":0,"intent":"a"}`); got != `{"messages":[]}` {
		t.Errorf("no time to wait: %s", got)
	}
	s.must(1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":2,"intent":"a"}`)
	if got := s.payloads(2, data); !slices.Equal(got, []string{"2"}) {
		t.Errorf("received %v", got)
	}
	s.internal("Ipc.Close", 2)
	if !slices.Equal(s.last.Wakes, []int64{2}) {
		t.Errorf("close wakes %v", s.last.Wakes)
	}
	if _, err := s.run(2, "Ipc.Receive", data); err == nil || err.Kind != fault.NotFound {
		t.Errorf("closed: %v", err)
	}
	s.check()
}

// TestReceiveRefused: processes without a mailbox.
func TestReceiveRefused(t *testing.T) {
	t.Parallel()
	for pid, begins := range map[int64]string{
		9: "pid 9 has no mailbox",
	} {
		_, err := newShell(t, ipc.Options{}, 1).run(pid, "Ipc.Receive", `{"wait_ms":100}`)
		if err == nil || err.Kind != fault.NotFound || !strings.HasPrefix(err.Text(), begins) {
			t.Errorf("pid %d: %v", pid, err)
		}
	}
}

// TestOpenAndClose: opening twice loses no message, closing loses all, and neither can fail.
func TestOpenAndClose(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 3, 1, 2)
	s.send(1, 2, "1")
	s.internal("Ipc.Open", 2, 4)
	s.check()
	if got := s.payloads(2, `{"max":9}`); !slices.Equal(got, []string{"1"}) {
		t.Errorf("received %v", got)
	}
	s.send(1, 2, "2")
	s.internal("Ipc.Close", 2, 2, 9)
	if _, err := s.run(1, "Syscall.SendMsg", `{"receiver_pid":2,"payload":1}`); err == nil || err.Kind != fault.NotFound {
		t.Errorf("sent to a closed mailbox: %v", err)
	}
	s.internal("Ipc.Open", 2)
	if got := s.payloads(2, `{"max":9}`); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	if got := fmt.Sprint(s.domain.Mailboxes()); got != "[1 2 3 4]" {
		t.Errorf("mailboxes %s", got)
	}
	s.check()
	s.domain.Reset()
	if got := s.domain.Mailboxes(); len(got) != 0 {
		t.Errorf("after reset: %v", got)
	}
	fresh := ipc.New(ipc.Options{})
	if got, want := domaintest.Snapshot(t, s.domain), domaintest.Snapshot(t, fresh); string(got) != string(want) {
		t.Errorf("after reset: %s", got)
	}
}

package ipc_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// The model of subscriptions and acknowledgements.

func (m *model) subscribe(t *rapid.T, s *shell, pid int64) {
	_, err := s.run(pid, "Ipc.Subscribe", "{}")
	switch {
	case m.boxes[pid] == nil && err != nil && err.Code() == 404:
	case m.boxes[pid] != nil && m.subscriber[pid] != "" && err != nil && err.Code() == 409:
	case m.boxes[pid] != nil && m.subscriber[pid] == "" && err == nil:
		m.subscriber[pid] = s.conn
	default:
		t.Fatalf("pid %d, followed on %q, subscribes: %v", pid, m.subscriber[pid], err)
	}
}

// push takes the next messages, as a subscriber's connection does; each message is one event.
func (m *model) push(t *rapid.T, s *shell, pid int64, ack bool) {
	got, err := s.run(pid, "Ipc.Deliver", fmt.Sprintf(`{"max":2,"ack":%t}`, ack))
	if m.boxes[pid] == nil {
		if err == nil {
			t.Fatalf("pid %d has no mailbox and is pushed %s", pid, got)
		}
		return
	}
	want := m.readable(pid, "any")
	want = want[:min(2, len(want))]
	if len(want) == 0 {
		if err != nil || got != "" || s.last.Wait == 0 {
			t.Fatalf("nothing is there, and %s is pushed, %v", got, err)
		}
		return
	}
	data := make([]string, 0, len(want))
	for _, e := range s.last.Lasting.Events {
		data = append(data, string(e.Data))
	}
	if `{"messages":[`+strings.Join(data, ",")+`]}` != got || s.last.Lasting.Follow == nil {
		t.Fatalf("events %s of %s", data, got)
	}
	m.took(t, s, got, pid, want, ack)
}

// ack acknowledges by number; some numbers do not exist.
func (m *model) ack(t *rapid.T, s *shell, pid int64, ids []int) {
	data := strings.ReplaceAll(fmt.Sprint(ids), " ", ",")
	got, err := s.run(pid, "Ipc.Ack", `{"msg_ids":`+data+`}`)
	if m.boxes[pid] == nil {
		if err == nil {
			t.Fatalf("pid %d has no mailbox and acknowledges %s", pid, got)
		}
		return
	}
	found := []int{}
	for _, id := range ids {
		before := len(m.flight[pid]) + len(m.boxes[pid])
		m.flight[pid] = slices.DeleteFunc(m.flight[pid], func(l letter) bool { return l.id == id })
		m.boxes[pid] = slices.DeleteFunc(m.boxes[pid], func(l letter) bool { return l.redelivered && l.id == id && !m.dead(l) })
		if len(m.flight[pid])+len(m.boxes[pid]) < before {
			found = append(found, id)
		}
	}
	shown := make([]string, len(found))
	for i, id := range found {
		shown[i] = fmt.Sprint(id)
	}
	if want := `{"acknowledged":[` + strings.Join(shown, ",") + `]}`; got != want {
		t.Fatalf("acknowledged %s of %v, want %s", got, ids, want)
	}
}

// giveBack ends one connection, or all.
func (m *model) giveBack(s *shell, conn string, pids ...int64) {
	s.must(0, "Ipc.Return", fmt.Sprintf(`{"pids":[%d,%d],"conn":%q}`, pids[0], pids[1], conn))
	for _, pid := range pids {
		if conn == "" || m.subscriber[pid] == conn {
			delete(m.subscriber, pid)
		}
		m.flight[pid] = slices.DeleteFunc(m.flight[pid], func(l letter) bool {
			if conn != "" && l.conn != conn {
				return false
			}
			l.conn, l.redelivered = "", true
			m.boxes[pid] = append(m.boxes[pid], l)
			return true
		})
		slices.SortFunc(m.boxes[pid], func(a, b letter) int { return a.id - b.id })
	}
}

package ipc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel/ipc"
)

const modelCapacity = 3

// model is the mailboxes in their simplest form: all messages that were delivered and not received, in the order of
// arrival.
type model struct {
	tick  int
	last  int
	boxes map[int64][]letter // nil: no mailbox

	flight     map[int64][]letter // delivered, not acknowledged
	subscriber map[int64]string
}

type letter struct {
	id      int
	sender  int64
	intent  string
	urgent  bool
	expires int // -1: never

	conn        string // of a letter in flight
	redelivered bool
}

func (m *model) dead(l letter) bool { return l.expires >= 0 && m.tick > l.expires }

// readable returns the letters that pid would receive now, in order.
func (m *model) readable(pid int64, intent string) []letter {
	var first, then []letter
	for _, l := range m.boxes[pid] {
		switch {
		case m.dead(l) || (intent != "any" && intent != l.intent):
		case l.urgent:
			first = append(first, l)
		default:
			then = append(then, l)
		}
	}
	return append(first, then...)
}

// offer is the outcome of a letter for one mailbox.
func (m *model) offer(l letter, to int64) string {
	switch {
	case m.boxes[to] == nil:
		return "no mailbox"
	case l.expires >= 0 && m.tick > l.expires:
		return "EXPIRED"
	case l.intent == "secret" && l.sender == 1 || l.sender == 2 && to == 3: // as in rules
		return "BLOCKED_BY_GOVERNANCE"
	case len(m.readable(to, "any"))+len(m.flight[to]) >= modelCapacity:
		return "MAILBOX_FULL"
	}
	return "DELIVERED"
}

var rules = []ipc.Rule{{Intent: of("secret"), SenderPID: of(int64(1))}, {SenderPID: of(int64(2)), ReceiverPID: of(int64(3))}}

// TestModel: after any calls in any order the mailboxes equal the model's, and both replay and restoring give the
// same state.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t, ipc.Options{Capacity: modelCapacity, Rules: rules}, 1, 2, 3)
		m := &model{boxes: map[int64][]letter{0: {}, 1: {}, 2: {}, 3: {}}, flight: map[int64][]letter{}, subscriber: map[int64]string{}}
		conn := func(name string) string { return rapid.SampledFrom([]string{"c-1", "c-2"}).Draw(t, name) }
		pid := func(name string) int64 { return rapid.Int64Range(1, 4).Draw(t, name) }
		t.Repeat(map[string]func(*rapid.T){
			"send":                 func(*rapid.T) { m.send(t, s, pid("sender")%4, pid("receiver")) },
			"send all":             func(*rapid.T) { m.sendAll(t, s, 0) },
			"send to the operator": func(*rapid.T) { m.send(t, s, pid("sender")%3+1, 0) },
			"broadcast":            func(*rapid.T) { m.broadcast(t, s, pid("sender")%4) },
			"receive": func(*rapid.T) {
				s.conn = conn("conn")
				m.receive(t, s, pid("receiver")%4, rapid.Bool().Draw(t, "ack"))
			},
			"subscribe": func(*rapid.T) {
				s.conn = conn("conn")
				m.subscribe(t, s, pid("pid")%4)
			},
			"deliver": func(*rapid.T) {
				s.conn = conn("conn")
				m.push(t, s, pid("pid")%4, rapid.Bool().Draw(t, "ack"))
			},
			"ack": func(*rapid.T) {
				m.ack(t, s, pid("pid")%4, rapid.SliceOfN(rapid.IntRange(1, m.last+1), 1, 3).Draw(t, "ids"))
			},
			"return": func(*rapid.T) {
				m.giveBack(s, rapid.SampledFrom([]string{"c-1", "c-2", ""}).Draw(t, "conn"), pid("pid"), pid("other"))
			},
			"tick": func(*rapid.T) {
				s.tick += rapid.Int64Range(0, 2).Draw(t, "ticks")
				m.tick = int(s.tick)
			},
			"open": func(*rapid.T) {
				pid := pid("pid")
				s.internal("Ipc.Open", pid)
				m.boxes[pid] = append([]letter{}, m.boxes[pid]...)
			},
			"close": func(*rapid.T) {
				pid := pid("pid")
				s.internal("Ipc.Close", pid)
				delete(m.boxes, pid)
				delete(m.flight, pid)
				delete(m.subscriber, pid)
			},
			"crash":   func(*rapid.T) { s.internal("Ipc.Address", 1, 2, 3, 4) }, // an interrupted broadcast
			"restart": func(*rapid.T) { s.domain = s.restored() },
		})
		s.check()
	})
}

func (m *model) draw(t *rapid.T, sender int64, plain bool) (letter, string) {
	l := letter{sender: sender, expires: -1, intent: rapid.SampledFrom([]string{"", "a", "secret"}).Draw(t, "intent")}
	data := fmt.Sprintf(`"intent":%q,"payload":"p"`, l.intent)
	if plain {
		return l, data
	}
	if l.urgent = rapid.Bool().Draw(t, "urgent"); l.urgent {
		data += `,"priority":"URGENT"`
	}
	if rapid.Bool().Draw(t, "expires") {
		l.expires = max(0, m.tick+rapid.IntRange(-1, 3).Draw(t, "expiry"))
		data += fmt.Sprintf(`,"expires_at_tick":%d`, l.expires)
	}
	return l, data
}

func (m *model) deliver(l letter, to ...int64) {
	for _, pid := range to {
		m.boxes[pid] = append(m.boxes[pid], l)
	}
}

func (m *model) send(t *rapid.T, s *shell, from, to int64) {
	l, data := m.draw(t, from, false)
	want := m.offer(l, to)
	got, err := s.run(from, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,%s}`, to, data))
	m.settle(t, &l, want, got, err)
	if want == "DELIVERED" {
		m.deliver(l, to)
	}
}

// settle compares an answer with the expected one, and gives the letter its number.
func (m *model) settle(t *rapid.T, l *letter, want, got string, err error) {
	if want == "no mailbox" || want == "MAILBOX_FULL" {
		if got != "" || !strings.Contains(fmt.Sprint(err), want[:len(want)-1]) {
			t.Fatalf("want %s, got %s %v", want, got, err)
		}
		return
	}
	m.last++
	l.id = m.last
	if !strings.Contains(got, fmt.Sprintf(`"status":%q,"msg_id":%d`, want, l.id)) {
		t.Fatalf("want %s of message %d, got %s %v", want, l.id, got, err)
	}
}

// audience sorts all mailboxes except the sender's by the outcome of a letter there.
func (m *model) audience(l letter) map[string][]int64 {
	found := map[string][]int64{}
	for to := int64(1); to <= 4; to++ {
		if m.boxes[to] != nil && to != l.sender {
			what := m.offer(l, to)
			found[what] = append(found[what], to)
		}
	}
	return found
}

func (m *model) sendAll(t *rapid.T, s *shell, from int64) {
	l, data := m.draw(t, from, false)
	found := m.audience(l)
	want := "no mailbox"
	for _, what := range []string{"BLOCKED_BY_GOVERNANCE", "MAILBOX_FULL", "DELIVERED"} { // the last existing one
		if found[what] != nil {
			want = what
		}
	}
	if m.dead(l) {
		want = "EXPIRED"
	}
	got, err := s.run(from, "Syscall.SendMsg", `{"receiver_pid":0,`+data+`}`)
	m.settle(t, &l, want, got, err)
	m.deliver(l, found["DELIVERED"]...)
}

func (m *model) broadcast(t *rapid.T, s *shell, from int64) {
	l, data := m.draw(t, from, true)
	found := m.audience(l)
	list := func(pids []int64) string { return strings.ReplaceAll(fmt.Sprint(pids), " ", ",") }
	want := `{"delivered":` + list(found["DELIVERED"]) + `,"mailbox_full":` + list(found["MAILBOX_FULL"]) + `}`
	if got := s.must(from, "Ipc.Broadcast", `{`+data+`}`); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	m.last++
	l.id = m.last
	m.deliver(l, found["DELIVERED"]...)
}

func (m *model) receive(t *rapid.T, s *shell, pid int64, ack bool) {
	intent := rapid.SampledFrom([]string{"any", "", "a"}).Draw(t, "intent")
	most := rapid.IntRange(1, 4).Draw(t, "max")
	data := fmt.Sprintf(`{"max":%d,"ack":%t}`, most, ack)
	if intent != "any" {
		data = fmt.Sprintf(`{"max":%d,"ack":%t,"intent":%q}`, most, ack, intent)
	}
	got, err := s.run(pid, "Ipc.Receive", data)
	if m.boxes[pid] == nil {
		if err == nil {
			t.Fatalf("pid %d has no mailbox and received %s", pid, got)
		}
		return
	}
	want := m.readable(pid, intent)
	m.took(t, s, got, pid, want[:min(most, len(want))], ack)
}

// took checks that the answer has the wanted letters, and removes these from the mailbox.
func (m *model) took(t *rapid.T, s *shell, got string, pid int64, want []letter, ack bool) {
	messages := s.messages(got)
	if len(messages) != len(want) {
		t.Fatalf("received %s, want %+v", got, want)
	}
	for i, l := range want {
		r := messages[i]
		if int(r.MsgID) != l.id || r.SenderPID != l.sender || r.ReceiverPID != pid || r.Intent != l.intent ||
			(r.Priority == "URGENT") != l.urgent || r.Redelivered != l.redelivered {
			t.Fatalf("received %s, want %+v", got, want)
		}
	}
	m.boxes[pid] = slices.DeleteFunc(m.boxes[pid], func(l letter) bool { return slices.Contains(want, l) })
	for _, l := range want {
		if l.conn = s.conn; ack {
			m.flight[pid] = append(m.flight[pid], l)
		}
	}
}

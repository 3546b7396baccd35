package ipc_test

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// shell drives a domain as the kernel's shell does, and keeps a journal.
type shell struct {
	t       domaintest.TB
	options ipc.Options
	domain  *ipc.Domain
	tick    int64
	final   bool
	conn    string // of the calls
	origin  string // of the calls
	id      string // of the calls' message

	journal domaintest.Journal
	last    kernel.Result
}

// newShell returns a domain with a mailbox for each of the given processes.
func newShell(t domaintest.TB, options ipc.Options, pids ...int64) *shell {
	s := &shell{t: t, options: options, domain: ipc.New(options)}
	s.internal("Ipc.Open", pids...)
	return s
}

// run decodes, decides, and applies a call, its steps first. A waiting call has an empty answer.
func (s *shell) run(pid int64, typ, data string) (string, *fault.Fault) {
	s.t.Helper()
	call := s.request(pid, typ, data)
	result, err := domaintest.Decide(s.t, s.domain, call)
	s.last = result
	if err != nil {
		return "", domaintest.Shown(s.t, err)
	}
	if result.Wait > 0 {
		return "", nil
	}
	for _, step := range result.Steps {
		raw, err := schema.Marshal(step.Input)
		testkit.Must(s.t, err)
		own := s.request(kernel.Operator, step.Row.Type, string(raw))
		if !own.Syscall.Internal || own.Syscall.Domain != schema.Ipc {
			s.t.Fatalf("step %s", step.Row.Type)
		}
		done, err := s.domain.Decide(own)
		testkit.Must(s.t, err)
		own.Input = step.Input // a live step is not decoded again
		s.journal.Apply(s.domain, own, done.Data)
	}
	s.journal.Apply(s.domain, call, result.Data)
	return string(result.Data), nil
}

func (s *shell) request(pid int64, typ, data string) *kernel.Call {
	s.t.Helper()
	call := domaintest.Request(s.t, typ, data)
	call.PID, call.Tick, call.Final, call.Origin = pid, s.tick, s.final, s.origin
	call.Caller.Conn, call.Message.Meta.ID = s.conn, s.id
	return call
}

// check compares the state with two others: a fresh domain that replays the journal with rules that deny everything,
// and one that is restored from a snapshot.
func (s *shell) check() {
	s.t.Helper()
	s.journal.Check(s.t, s.domain, ipc.New(ipc.Options{Capacity: 1, Rules: []ipc.Rule{{}}}), ipc.New(s.options))
}

// restored returns a domain restored from a snapshot.
func (s *shell) restored() *ipc.Domain {
	s.t.Helper()
	to := ipc.New(s.options)
	domaintest.Restore(s.t, s.domain, to)
	return to
}

// must runs a call that must succeed.
func (s *shell) must(pid int64, typ, data string) string {
	s.t.Helper()
	got, err := s.run(pid, typ, data)
	if err != nil {
		s.t.Fatalf("%s %s: %v", typ, data, err)
	}
	return got
}

func (s *shell) internal(typ string, pids ...int64) {
	s.t.Helper()
	list := strings.ReplaceAll(fmt.Sprint(pids), " ", ",")
	if got := s.must(kernel.Operator, typ, `{"pids":`+list+`}`); got != `{"success":true}` {
		s.t.Fatal(got)
	}
}

// send sends a message with nothing but a payload, and expects it to be delivered.
func (s *shell) send(from, to int64, payload string) {
	s.t.Helper()
	got := s.must(from, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%s}`, to, payload))
	if !strings.Contains(got, `"DELIVERED"`) {
		s.t.Fatal(got)
	}
}

// payloads receives messages, and returns their payloads.
func (s *shell) payloads(pid int64, data string) []string {
	s.t.Helper()
	list := []string{}
	for _, m := range s.messages(s.must(pid, "Ipc.Receive", data)) {
		list = append(list, string(m.Payload))
	}
	return list
}

func (s *shell) messages(data string) []schema.MailMessage {
	s.t.Helper()
	row, _ := schema.Lookup("Ipc.Receive")
	out, err := row.Output().Decode([]byte(data))
	if err != nil {
		s.t.Fatal(err)
	}
	return out.(*schema.ReceiveOutput).Messages
}

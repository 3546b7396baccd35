package ipc_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
)

// fatal is what both *testing.T and *rapid.T are.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var _ fatal = (*testing.T)(nil)

// shell does to a domain what the kernel's shell does, and keeps what the journal would.
type shell struct {
	t       fatal
	options ipc.Options
	domain  *ipc.Domain
	tick    int64
	final   bool
	conn    string // of the calls
	id      string // likewise, of their message

	journal []*kernel.Call // applied commands, their data as it was written
	last    kernel.Result
}

// newShell returns a domain with a mailbox for each of the given processes.
func newShell(t fatal, options ipc.Options, pids ...int64) *shell {
	s := &shell{t: t, options: options, domain: ipc.New(options)}
	s.internal("Ipc.Open", pids...)
	return s
}

// run decodes, decides, and applies a call, its steps first. It fails the test where Decide changes the state, or an
// answer does not fit its JSON Schema. The answer of a call that waits is empty.
func (s *shell) run(pid int64, typ, data string) (string, *schema.Error) {
	s.t.Helper()
	call := s.request(pid, typ, []byte(data))
	before := snapshot(s.t, s.domain)
	result, err := s.domain.Decide(call)
	if !bytes.Equal(before, snapshot(s.t, s.domain)) {
		s.t.Fatalf("%s %s: Decide changed the state", typ, data)
	}
	s.last = result
	if err != nil {
		var shown *schema.Error
		if !errors.As(err, &shown) || result.Data != nil {
			s.t.Fatalf("%s %s: error %v, data %s", typ, data, err, result.Data)
		}
		return "", shown
	}
	if result.Wait > 0 {
		return "", nil
	}
	validate(s.t, call.Syscall, result.Data)
	for _, step := range result.Steps {
		raw, err := schema.Marshal(step.Input)
		if err != nil {
			s.t.Fatal(err)
		}
		own := s.request(kernel.Operator, step.Type, raw)
		if !own.Syscall.Internal || own.Syscall.Domain != schema.Ipc {
			s.t.Fatalf("step %s", step.Type)
		}
		done, err := s.domain.Decide(own)
		if err != nil {
			s.t.Fatal(err)
		}
		own.Input = step.Input // live, a step is not decoded again
		s.apply(own, done.Data)
	}
	s.apply(call, result.Data)
	return string(result.Data), nil
}

// must is run for what has to succeed.
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

func (s *shell) request(pid int64, typ string, data []byte) *kernel.Call {
	s.t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		s.t.Fatalf("no syscall %s", typ)
	}
	in, fault := row.Input.Decode(data)
	if fault != nil {
		s.t.Fatalf("%s %s: %v", typ, data, fault)
	}
	return &kernel.Call{
		Syscall: row, Input: in, PID: pid, Tick: s.tick, Final: s.final,
		Caller:  kernel.Caller{Conn: s.conn},
		Message: schema.Message{Kind: row.Kind, Type: typ, Data: data, Meta: schema.Metadata{ID: s.id}},
	}
}

// apply applies a command, and overwrites the request afterwards, as a connection's next line does.
func (s *shell) apply(call *kernel.Call, data []byte) {
	call.Data = data
	entry := *call
	entry.Message.Data = slices.Clone(call.Message.Data)
	s.journal = append(s.journal, &entry)
	s.domain.Apply(call)
	for i := range call.Message.Data {
		call.Message.Data[i] = '#'
	}
}

// check compares the state with that of a fresh domain which replays the journal, under a configuration that lets nothing
// through, and with that of one which is restored.
func (s *shell) check() {
	s.t.Helper()
	want := snapshot(s.t, s.domain)
	replayed := ipc.New(ipc.Options{Capacity: 1, Rules: []ipc.Rule{{}}})
	for _, entry := range s.journal {
		in, fault := entry.Syscall.Input.Decode(entry.Message.Data)
		if fault != nil {
			s.t.Fatal(fault)
		}
		again := *entry
		again.Input = in
		replayed.Apply(&again)
	}
	if got := snapshot(s.t, replayed); !bytes.Equal(got, want) {
		s.t.Fatalf("replayed\n%s\nlive\n%s", got, want)
	}
	if got := snapshot(s.t, s.restored()); !bytes.Equal(got, want) {
		s.t.Fatalf("restored\n%s\nlive\n%s", got, want)
	}
}

// restored returns a domain made of a snapshot, whose chunks are overwritten once they are read.
func (s *shell) restored() *ipc.Domain {
	s.t.Helper()
	to := ipc.New(s.options)
	if err := s.domain.Snapshot()(func(chunk []byte) error {
		mine := slices.Clone(chunk)
		defer clear(mine)
		return to.Restore(mine)
	}); err != nil {
		s.t.Fatal(err)
	}
	return to
}

func snapshot(t fatal, d *ipc.Domain) []byte {
	t.Helper()
	var chunks [][]byte // kept as they come: a writer may
	if err := d.Snapshot()(func(chunk []byte) error {
		chunks = append(chunks, chunk)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(chunks...)
}

// send sends a message of which nothing is said but its payload, and expects it to be delivered.
func (s *shell) send(from, to int64, payload string) {
	s.t.Helper()
	got := s.must(from, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%s}`, to, payload))
	if !strings.Contains(got, `"DELIVERED"`) {
		s.t.Fatal(got)
	}
}

// payloads receives, and returns the payloads of what came.
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
	out, fault := row.Output.Decode([]byte(data))
	if fault != nil {
		s.t.Fatal(fault)
	}
	return out.(*schema.ReceiveOutput).Messages
}

var compiled sync.Map // *jsonschema.Schema by syscall type

// validate checks an answer against its row's JSON Schema.
func validate(t fatal, row *schema.Syscall, data []byte) {
	t.Helper()
	known, ok := compiled.Load(row.Type)
	if !ok {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(row.Output.AppendJSONSchema(nil)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("output.json", doc); err != nil {
			t.Fatal(err)
		}
		sch, err := c.Compile("output.json")
		if err != nil {
			t.Fatal(err)
		}
		known, _ = compiled.LoadOrStore(row.Type, sch)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s answers no JSON: %v: %s", row.Type, err, data)
	}
	if err := known.(*jsonschema.Schema).Validate(value); err != nil {
		t.Fatalf("%s answers %s: %v", row.Type, data, err)
	}
}

package actors_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// recorder is a domain whose state is the list of the commands that it has applied, by the word that each has. It answers a
// query with the list, and a command with its position in it. A test may set another answer.
type recorder struct {
	kernel.Stateless

	// decide, if set, is called first; ok is false if the recorder should answer.
	decide func(call *kernel.Call, applied []string) (result kernel.Result, ok bool, err error)
	apply  func(call *kernel.Call) // if set, called by Apply first

	mu      sync.Mutex
	applied []string
}

func (r *recorder) Decide(call *kernel.Call) (kernel.Result, error) {
	applied := r.read()
	if r.decide != nil {
		if result, ok, err := r.decide(call, applied); ok || err != nil {
			return result, err
		}
	}
	if call.Syscall.Kind == schema.KindQuery {
		return kernel.Result{Data: []byte(`"` + strings.Join(applied, " ") + `"`)}, nil
	}
	return kernel.Result{Data: []byte(strconv.Itoa(len(applied) + 1))}, nil
}

func (r *recorder) Apply(call *kernel.Call) {
	if r.apply != nil {
		r.apply(call)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = append(r.applied, word(call))
}

func (r *recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = nil
}

// read returns the state.
func (r *recorder) read() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.applied)
}

// word returns the word that distinguishes a command from others of its type.
func word(call *kernel.Call) string {
	switch in := call.Input.(type) {
	case *schema.MemorySetInput:
		return in.Key
	case *schema.SpawnInput:
		return in.ChildAgentID
	case *schema.ProcessPrepareInput:
		return "prepare-" + strconv.FormatInt(in.PID, 10)
	case *schema.MailboxInput:
		return "open-" + strconv.FormatInt(in.PIDs[0], 10)
	case *schema.GrantInput:
		return "grant-" + strconv.FormatInt(in.PID, 10)
	case *schema.EndowInput:
		return "grant-" + strconv.FormatInt(in.PID, 10)
	}
	return text(call)
}

// recorders is a kernel with a recorder for each of the domains that matter to the journal: two that other domains do not read,
// and the registries, which all read.
type recorders map[schema.Domain]*recorder

func newRecorders() recorders {
	return recorders{
		schema.Kernel: {}, schema.Memory: {}, schema.Ipc: {}, schema.Capability: {}, schema.Process: {},
	}
}

func (r recorders) domains() map[schema.Domain]kernel.Domain {
	m := make(map[schema.Domain]kernel.Domain, len(r))
	for name, b := range r {
		m[name] = b
	}
	return m
}

// applied returns what each recorder has applied.
func (r recorders) applied() map[schema.Domain][]string {
	m := make(map[schema.Domain][]string, len(r))
	for name, b := range r {
		if applied := b.read(); len(applied) > 0 {
			m[name] = applied
		}
	}
	return m
}

// Frames for recorders.

func set(id, key string) string { return command(id, "Memory.Set", `{"key":"`+key+`","value":1}`) }

func get(id string) string { return query(id, "Memory.Get", `{"key":"k"}`) }

func spawn(id, name string) string {
	return command(id, "Syscall.Spawn", `{"child_agent_id":"`+name+`"}`)
}

func processes(id string) string { return query(id, "Process.List", `{}`) }

func grant(id string, pid int) string {
	return command(id, "Capability.Grant", `{"pid":`+strconv.Itoa(pid)+`,"allowed_syscalls":["*"]}`)
}

func receive(id string, more string) string { return command(id, "Ipc.Receive", `{`+more+`}`) }

func sendMsg(id, payload string) string {
	return command(id, "Syscall.SendMsg", `{"receiver_pid":7,"payload":`+payload+`}`)
}

func command(id, typ, data string) string {
	return frame(schema.OsMessage, schema.KindCommand, typ, data, id)
}

func query(id, typ, data string) string {
	return frame(schema.OsMessage, schema.KindQuery, typ, data, id)
}

// entry is an entry of the journal in the form that tests compare.
type entry struct {
	Seq     uint64
	Type    string
	PID     int64
	Tick    int64
	ID      string // of the message
	Outcome string

	conn    string
	origin  string
	time    int64
	latency int64
	request string
	call    schema.Message
}

// entries reads the journal from its present files.
func (s *system) entries() []entry {
	s.t.Helper()
	r := journal.NewReader(s.disk, "/journal", journal.ReaderOptions{})
	defer func() { _ = r.Close() }()
	var list []entry
	for {
		record, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			s.t.Fatalf("read journal: %v", err)
		}
		m, fault := schema.Decode(slices.Clone(record.Request), schema.OsMessage)
		if fault != nil {
			s.t.Fatalf("decode entry %d: %v", record.Seq, fault)
		}
		list = append(list, entry{
			Seq: record.Seq, Type: m.Type, PID: record.PID, Tick: record.Tick, ID: m.Meta.ID,
			Outcome: string(record.Outcome), conn: record.Conn, origin: record.Origin, time: record.Time,
			latency: record.LatencyUS, request: string(record.Request), call: m,
		})
	}
}

// journaled returns the ids of the messages in the journal, in order.
func (s *system) journaled() []string {
	s.t.Helper()
	var ids []string
	for _, e := range s.entries() {
		ids = append(ids, e.ID)
	}
	return ids
}

// replayed returns the state that the next start would build from the journal.
func (s *system) replayed() map[schema.Domain][]string {
	s.t.Helper()
	fresh := newRecorders()
	r := journal.NewReader(s.disk, "/journal", journal.ReaderOptions{})
	defer func() { _ = r.Close() }()
	if err := record.Replay(context.Background(), r, fresh.domains(), nil, func(*kernel.Call) {}); err != nil {
		s.t.Fatalf("replay: %v", err)
	}
	return fresh.applied()
}

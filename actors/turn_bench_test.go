package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/schema"
)

// manual is a kernel with the domains that have much state, whose turns a test runs, with one connection of the operator.
type manual struct {
	t       testing.TB
	domains map[schema.Domain]kernel.Domain
	kernel  *actors.Kernel
	journal *journal.Log
	client  *client
	turns   int           // since the last request
	longest time.Duration // of them
}

func startManual(t testing.TB, runners map[string]kernel.Runner) *manual {
	procs := process.New(nil)
	view := procs.Processes()
	tokens := capability.New(nil, view)
	ledger, err := resource.New(nil, tokens, view)
	if err != nil {
		t.Fatal(err)
	}
	values, err := memory.New(schema.Value("{}"), view)
	if err != nil {
		t.Fatal(err)
	}
	m := &manual{t: t, domains: map[schema.Domain]kernel.Domain{
		schema.Process: procs, schema.Capability: tokens, schema.Memory: values, schema.Resource: ledger,
		schema.Ipc: ipc.New(ipc.Options{Processes: view}), schema.Delta: delta.New(view),
	}}
	dir := t.TempDir()
	m.journal, _, err = journal.Open(journal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m.kernel = actors.New(actors.Config{
		Manual: true, Domains: m.domains, Tokens: tokens, Processes: view, Keys: idempotency.New(), Journal: m.journal, Dir: dir,
		Origin: "https://test.local/", Tick: 1, Runners: runners, Log: slog.New(slog.DiscardHandler),
	})
	l := newLink(schema.OsMessage, math.MaxInt32, unbounded)
	m.client = newClient(t, l)
	m.kernel.Serve(l, kernel.Caller{Conn: "c-1"}, func() { close(m.client.done) })
	m.ask("no frame") // connects it
	t.Cleanup(func() {
		m.client.endInput()
		closed := make(chan error, 1)
		go func() {
			<-m.client.done
			closed <- errors.Join(m.kernel.Close(), m.journal.Close())
		}()
		for {
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
				return
			default:
				m.turn()
			}
		}
	})
	return m
}

// turn runs a turn, and then the work outside of it.
func (m *manual) turn() {
	begun := time.Now()
	beside, _ := m.kernel.Turn()
	m.longest = max(m.longest, time.Since(begun))
	m.turns++
	for _, work := range beside {
		work()
	}
}

// ask sends a frame, and runs turns until it is answered.
func (m *manual) ask(line string) answer {
	m.t.Helper()
	m.turns, m.longest = 0, 0
	m.client.send(line)
	for {
		m.turn()
		if a := m.client.pending(); len(a) > 0 {
			return a[0]
		}
	}
}

// apply applies a command as a replay does.
func (m *manual) apply(typ string, in any, reply string, tick int64) {
	row, ok := schema.Lookup(typ)
	if !ok {
		m.t.Fatalf("no syscall %s", typ)
	}
	m.domains[row.Domain].Apply(&kernel.Call{Request: kernel.Request{Syscall: row, Input: in}, Decision: kernel.Decision{Origin: "https://test.local/", Moment: kernel.Moment{Tick: tick}}, Outcome: kernel.Outcome{Data: []byte(reply)}})
}

// populate spawns n processes, all except for the first as its children, with mailboxes, and with tokens that have expired
// or not.
func (m *manual) populate(n int64, expired bool) {
	expires := "null"
	if expired {
		expires = "0"
	}
	for pid := int64(1); pid <= n; pid++ {
		m.domains[schema.Process].Apply(&kernel.Call{
			Request:  kernel.Request{Syscall: schema.SyscallSpawn.Syscall, Input: &schema.SpawnInput{ChildAgentID: "a"}},
			Decision: kernel.Decision{PID: min(pid-1, 1), Origin: "https://test.local/"},
			Outcome:  kernel.Outcome{Data: []byte(`{"child_pid":1,"child_agent_id":"a"}`)},
		})
		m.apply("Ipc.Open", &schema.MailboxInput{PIDs: []int64{pid}}, `{"success":true}`, 0)
		m.apply("Capability.Grant", &schema.GrantInput{}, fmt.Sprintf(
			`{"pid":%d,"granted_by":0,"allowed_syscalls":["*"],"resource_quotas":{},"expires_at_tick":%s}`, pid, expires), 0)
	}
	for _, d := range m.domains {
		if p, ok := d.(kernel.Publisher); ok {
			p.Publish()
		}
	}
}

// BenchmarkTurns reports the longest turn of each of these calls, which delays all others.
func BenchmarkTurns(b *testing.B) {
	long := strings.Repeat("0123456789abcdef", 1<<16)
	object := make(map[string]string)
	for i := range 2000 {
		object[fmt.Sprint("member", i)] = long[:1024-16]
	}
	changes, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	adoption, err := schema.Marshal(&schema.Adoption{
		Identity: schema.Identity{ContextID: "c", URI: "os:///a", Digest: "d", Proof: "none"}, FrontMatter: "{}", Content: strings.Repeat("a line of text\n", 1<<16),
	})
	if err != nil {
		b.Fatal(err)
	}
	runners := map[string]kernel.Runner{"Kernel.Ingest": func(context.Context, *kernel.Job) ([]byte, error) { return adoption, nil }}
	for _, c := range []struct {
		name      string
		processes int64
		kind      schema.Kind
		typ, data string
	}{
		{"Terminate100000", 100_000, schema.KindCommand, "Syscall.Terminate", `{"target_pid":1}`},
		{"CommitDelta2MB", 0, schema.KindCommand, "Syscall.CommitDelta", `{"agent_id":"a","changes":` + string(changes) + `}`},
		{"Broadcast10000", 10_000, schema.KindCommand, "Ipc.Broadcast", `{"payload":1}`},
		{"RevokeExpired100000", 100_000, schema.KindCommand, "Capability.RevokeExpired", `{}`},
		{"Set1MB", 0, schema.KindCommand, "Memory.Set", `{"key":"k","value":"` + long + `"}`},
		{"Ingest1MB", 0, schema.KindCommand, "Kernel.Ingest", `{"uri":"os:///a"}`},
		{"Get1MB", 0, schema.KindQuery, "Memory.Get", `{"key":"k"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := startManual(b, runners)
			if c.processes > 0 {
				m.populate(c.processes, c.typ == "Capability.RevokeExpired")
			}
			if c.typ == "Memory.Get" {
				m.apply("Memory.Set", &schema.MemorySetInput{Key: "k", Value: schema.Value(`"` + long + `"`)}, `{"success":true}`, 0)
			}
			var sum time.Duration
			b.ReportAllocs()
			for b.Loop() {
				if a := m.ask(frame(schema.OsMessage, c.kind, c.typ, c.data, "x")); a.Kind != schema.KindReply {
					b.Fatal(a)
				}
				sum += m.longest
			}
			b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/longest-turn")
			b.ReportMetric(float64(m.turns), "turns")
		})
	}
}

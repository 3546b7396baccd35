package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// TestOriginsCannotTell has two agents of two origins make 10,000 random calls in one kernel, and each the same calls in a kernel of
// its own, where PIDs that belong to the other are ones that nobody has. Either gets the same answers: nothing that an agent can
// do tells whether there is another origin (ABI 6.4).
//
// The numbers that the kernel gives out in one row for all are not compared, and PIDs are compared as names: who sees a gap
// in those learns that something was done, which the kernel does for itself too.
func TestOriginsCannotTell(t *testing.T) {
	t.Parallel()
	const calls = 10_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	together := newWorld(t, seed, "a", "b").run(calls)
	for _, name := range []string{"a", "b"} {
		alone := newWorld(t, seed, name).run(calls)
		if len(alone[name]) < calls/3 {
			t.Fatalf("%s made %d calls", name, len(alone[name]))
		}
		for i, want := range alone[name] {
			if got := together[name][i]; got != want {
				t.Fatalf("call %d of %s, alone:\n%s\nbeside another origin:\n%s", i, name, want, got)
			}
		}
	}
}

// world is a kernel with agents in it, who are called by the letter of their origin.
type world struct {
	t        *testing.T
	operator *client
	turns    *rand.Rand // whose turn it is; the same whoever is there
	agents   map[string]*dweller
}

// dweller is an agent of an origin.
type dweller struct {
	name   string
	client *client
	choose *rand.Rand
	pids   []int64 // its own, then its children's, in the order of their birth
	seqs   []int64 // of the records of its calls
	others func() []int64
	sent   int
}

func newWorld(t *testing.T, seed uint64, names ...string) *world {
	p := assemble(t)
	w := &world{t: t, operator: p.connect(0), turns: rand.New(rand.NewPCG(seed, 1)), agents: map[string]*dweller{}}
	for _, name := range names {
		data, err := p.kernel.Do("https://"+name+".example/", "Syscall.Spawn", &schema.SpawnInput{
			ChildAgentID: "agent", Capabilities: &schema.SpawnCapability{AllowedSyscalls: []string{"*"}},
		})
		var out struct {
			PID int64 `json:"child_pid"`
		}
		if err := errors.Join(err, json.Unmarshal(data, &out)); err != nil {
			t.Fatal(err)
		}
		w.agents[name] = &dweller{
			name: name, client: p.connect(out.PID), choose: rand.New(rand.NewPCG(seed, uint64(name[0]))), pids: []int64{out.PID},
			others: func() []int64 {
				for _, other := range w.agents {
					if other.name != name {
						return other.pids
					}
				}
				return nil
			},
		}
	}
	return w
}

// run makes calls, of which those of agents that are not there are left out, and returns each agent's transcript.
func (w *world) run(calls int) map[string][]string {
	transcripts := map[string][]string{}
	for i := range calls {
		name := []string{"a", "b"}[w.turns.IntN(2)]
		if i%500 == 499 {
			if err := w.operator.conn.SetDeadline(time.Now().Add(patience)); err != nil {
				w.t.Fatal(err)
			}
			w.operator.call("Clock.Advance", `{"ticks":1}`, nil)
		}
		if agent := w.agents[name]; agent != nil {
			transcripts[name] = append(transcripts[name], agent.act(w.t))
		}
	}
	return transcripts
}

// foreign is a PID that the agent cannot have from anywhere: one of the other's, or one that never was.
func (d *dweller) foreign() int64 {
	n := d.choose.IntN(1 << 16)
	if others := d.others(); len(others) > 0 {
		return others[n%len(others)]
	}
	return 900_000 + int64(n)
}

// act makes a call, and returns it with its answer, in words that do not depend on numbers of the kernel's.
func (d *dweller) act(t *testing.T) string {
	t.Helper()
	own, foreign := d.pids[d.choose.IntN(len(d.pids))], d.foreign()
	pid := own
	if d.choose.IntN(3) == 0 {
		pid = foreign
	}
	child := foreign
	if n := len(d.pids); n > 1 && d.choose.IntN(3) > 0 {
		child = d.pids[1+d.choose.IntN(n-1)]
	}
	typ, data := d.pick(pid, child)
	extra := fmt.Sprintf(`,"correlation":"talk-%d"`, d.choose.IntN(20))
	// Whether two bodies are the same must not depend on how many PIDs the other has.
	if key := d.choose.IntN(500); key < 50 && pid != foreign && child != foreign {
		extra += fmt.Sprintf(`,"idempotencyKey":"key-%d"`, key)
	}
	row, _ := schema.Lookup(typ)
	d.sent++
	if err := d.client.conn.SetDeadline(time.Now().Add(patience)); err != nil { // for each call, not for all of them
		t.Fatal(err)
	}
	id := fmt.Sprintf("%s-%d", d.name, d.sent)
	d.client.write(fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1%s}}`+"\n", row.Kind, typ, data, id, extra))
	a := d.client.next()
	if a.Metadata.Causation != id {
		t.Fatalf("%s %s: answered %q", typ, data, a.Metadata.Causation)
	}
	if k := a.Metadata.Kernel; k != nil {
		d.seqs = append(d.seqs, k.Seq)
	}
	var value any
	if err := json.Unmarshal(a.Data, &value); err != nil {
		t.Fatal(err)
	}
	if spawned, ok := value.(map[string]any); ok && a.Kind == "reply" && spawned["child_pid"] != nil {
		if pid := int64(spawned["child_pid"].(float64)); !slices.Contains(d.pids, pid) { // else a key was used again
			d.pids = append(d.pids, pid)
		}
	}
	var asked any
	if err := json.Unmarshal([]byte(data), &asked); err != nil {
		t.Fatal(err)
	}
	words := words{own: d.pids, foreign: foreign}
	said, err := json.Marshal([]any{typ, words.of("", asked), a.Kind, words.of("", value)})
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// pick picks a call that is about pid, or about child, which an agent may do more with.
func (d *dweller) pick(pid, child int64) (typ, data string) {
	r := d.choose
	key := func() string { return fmt.Sprintf(`"k/%d"`, r.IntN(12)) }
	since := int64(0)
	if len(d.seqs) > 0 && r.IntN(2) == 0 {
		since = d.seqs[r.IntN(len(d.seqs))]
	}
	calls := []func() (string, string){
		func() (string, string) { return "Memory.Set", fmt.Sprintf(`{"key":%s,"value":%d}`, key(), r.IntN(100)) },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":%s}`, key()) },
		func() (string, string) { return "Memory.Delete", fmt.Sprintf(`{"key":%s}`, key()) },
		func() (string, string) {
			return "Memory.List", fmt.Sprintf(`{"prefix":"k","limit":%d,"cursor":%s}`, 1+r.IntN(9), key())
		},
		func() (string, string) { return "Memory.List", `{"prefix":"proc/","limit":1000}` },
		func() (string, string) { return "Memory.Get", `{"key":"proc/meminfo"}` },
		func() (string, string) { return "Memory.Get", `{"key":"proc/cmdline"}` },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":"proc/%d/status"}`, pid) },
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["get",%s]}`, key())
		},
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["set",%s,%d]}`, key(), r.IntN(9))
		},
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"capability","args":[{"pid":%d}]}`, pid)
		},
		func() (string, string) {
			return "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"agent","capabilities":{"allowed_syscalls":["Memory.*"],"expires_at_tick":%d}}`, r.IntN(30))
		},
		func() (string, string) { return "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, child) },
		func() (string, string) { return "Process.Get", fmt.Sprintf(`{"pid":%d}`, pid) },
		func() (string, string) { return "Process.List", `{"state":"TERMINATED"}` },
		func() (string, string) { return "Process.List", `{"state":"READY"}` },
		func() (string, string) { return "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, pid) },
		func() (string, string) { return "Syscall.SendMsg", `{"receiver_pid":0,"payload":1}` },
		func() (string, string) { return "Ipc.Broadcast", `{"payload":2}` },
		func() (string, string) { return "Ipc.Receive", `{"max":5}` },
		func() (string, string) { return "Ipc.Ack", fmt.Sprintf(`{"msg_ids":[%d]}`, r.IntN(500)) },
		func() (string, string) { return "Capability.Get", fmt.Sprintf(`{"pid":%d}`, pid) },
		func() (string, string) {
			return "Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":"Memory.Set"}`, pid)
		},
		func() (string, string) {
			return "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Get"],"expires_at_tick":%d}`, child, r.IntN(30))
		},
		func() (string, string) { return "Capability.GrantDefault", fmt.Sprintf(`{"pid":%d}`, child) },
		func() (string, string) { return "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, child) },
		func() (string, string) { return "Capability.RevokeExpired", `{}` },
		func() (string, string) { return "Syscall.CommitDelta", fmt.Sprintf(`{"changes":{"n":%d}}`, r.IntN(9)) },
		func() (string, string) { return "Syscall.CommitDelta", `{"agent_id":"other"}` },
		func() (string, string) { return "Syscall.Rollback", fmt.Sprintf(`{"to_tick":%d}`, r.IntN(20)) },
		func() (string, string) { return "Syscall.Checkpoint", `{}` },
		func() (string, string) { return "Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, pid) },
		func() (string, string) { return "Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":4}`, since) },
		func() (string, string) {
			return "Audit.Log", fmt.Sprintf(`{"pid":%d,"limit":2,"since_seq":%d}`, pid, since)
		},
		func() (string, string) {
			return "Audit.Log", fmt.Sprintf(`{"correlation":"talk-%d","limit":3,"since_seq":%d}`, r.IntN(20), since)
		},
		func() (string, string) { return "Audit.Metrics", `{}` },
		func() (string, string) { return "Process.Subscribe", fmt.Sprintf(`{"pid":%d}`, d.others2(child)) },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":"a","pid":%d}`, d.others2(child)) },
		func() (string, string) { return "Syscall.List", `{}` },
		func() (string, string) { return "Clock.Get", `{}` },
	}
	return calls[r.IntN(len(calls))]()
}

// others2 is child, or a PID of nobody's where that is its own: a subscription would push between the answers.
func (d *dweller) others2(child int64) int64 {
	if slices.Contains(d.pids, child) {
		return d.foreign()
	}
	return child
}

// words replaces what the kernel numbers: PIDs by whose they are, other numbers by nothing.
type words struct {
	own     []int64
	foreign int64
}

var pidText = regexp.MustCompile(`(pid |grant |proc/)(\d+)`)

func (w words) pid(pid int64) string {
	if i := slices.Index(w.own, pid); i >= 0 {
		return "own-" + strconv.Itoa(i)
	}
	if pid == 0 {
		return "operator"
	}
	return "foreign"
}

func (w words) of(member string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = w.of(name, inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, w.of(member, inner))
		}
		if member == "keys" { // PIDs sort by their digits
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		return out
	case string:
		return pidText.ReplaceAllStringFunc(v, func(text string) string {
			parts := pidText.FindStringSubmatch(text)
			pid, _ := strconv.ParseInt(parts[2], 10, 64)
			return parts[1] + w.pid(pid)
		})
	case float64:
		switch member {
		case "pid", "child_pid", "target_pid", "receiver_pid", "sender_pid", "parent_pid", "delivered", "mailbox_full", "revoked":
			return w.pid(int64(v))
		case "seq", "since_seq", "next", "time", "msg_id", "checkpoint_id", "latency_us", "avg_latency_us", "p50_us", "p99_us":
			return "#"
		}
	}
	return value
}

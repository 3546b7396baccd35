package kernel_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestOriginsCannotTell has two agents of two origins that make about 3,000 random calls in one kernel, and each the same
// calls in a separate kernel, in which PIDs and blobs of the other do not exist. Each gets the same answers: nothing that
// an agent can do reveals whether there is another origin (ABI 6.4). The calls use memory, processes, messages, the audit
// log, names, ingested contexts, tools, external servers, and blobs; what a server and a tool see of their caller is part
// of the answers.
// Numbers from the kernel's global sequences are not compared, and PIDs are compared as names: a gap in them shows only
// that something was done, which the kernel itself does too. Nor are the random names of blobs compared, but their contents
// are.
func TestOriginsCannotTell(t *testing.T) {
	t.Parallel()
	for range 3 {
		if compared(t, newScenery(t, "a", "b")) || t.Failed() {
			return
		}
		t.Log("a call to the server timed out on this busy machine: trying again")
	}
	t.Error("calls to the server timed out in every attempt: the machine is too busy")
}

// compared makes the calls in all three kernels. It returns false if a call to something outside timed out, which may
// happen on a busy machine.
func compared(t *testing.T, s *scenery) bool {
	t.Helper()
	calls := testkit.Rounds(1_000, 1_500, 10_000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	late := func(line string) bool { return strings.Contains(line, `"code":504`) }
	together := newWorld(t, s, seed, "a", "b").run(calls)
	for _, name := range []string{"a", "b"} {
		alone := newWorld(t, s, seed, name).run(calls)
		if len(alone[name]) < calls/3 {
			t.Fatalf("%s made %d calls", name, len(alone[name]))
		}
		if slices.ContainsFunc(alone[name], late) || slices.ContainsFunc(together[name], late) {
			return false
		}
		for i, want := range alone[name] {
			if got := together[name][i]; got != want {
				t.Fatalf("call %d of %s, alone:\n%s\nbeside another origin:\n%s", i, name, want, got)
			}
		}
	}
	succeeded(t, slices.Concat(together["a"], together["b"])) // of one agent's random calls, all of a kind may be refused
	return true
}

// succeeded fails the test unless calls of each compared kind succeeded, since calls that are always refused show nothing.
func succeeded(t *testing.T, transcript []string) {
	t.Helper()
	replies := map[string]int{}
	for _, line := range transcript {
		var said [4]any
		testkit.Must(t, json.Unmarshal([]byte(line), &said))
		typ := said[0].(string)
		if typ == schema.CallType {
			asked := said[1].(map[string]any)
			if typ = asked["syscall"].(string); asked["describe"] != nil {
				typ += " described"
			}
		}
		if said[2] == "reply" {
			replies[typ]++
		}
		if text, err := json.Marshal(said[3]); err == nil && said[2] == "reply" && blobWord.Match(text) {
			replies[typ+" by reference"]++
		}
	}
	kinds := []string{
		"Memory.Set", "Memory.Get", "Memory.Get by reference", "Syscall.SendMsg", "Ipc.Receive", "Audit.Log", "FileSystem.Resolve",
		"Kernel.Ingest", "Kernel.Ingest by reference", "FileSystem.Hydrate", "Http.Fetch", "Http.Fetch by reference",
		"memory", "capability", "resolve", "ingest", "fetch", moduleTool, moduleTool + " described",
	}
	if programsRun {
		kinds = append(kinds, programTool)
	}
	for _, kind := range kinds {
		if replies[kind] == 0 {
			t.Errorf("no %s succeeded", kind)
		}
	}
}

// world is a kernel with agents in it, which are named by the letter of their origin.
type world struct {
	t        *testing.T
	operator *client
	turns    *rand.Rand // the order of the agents' calls; it does not depend on which agents exist
	agents   map[string]*dweller
}

// dweller is an agent of an origin.
type dweller struct {
	name   string
	client *client
	choose *rand.Rand
	pids   []int64  // its own, then its children's, in the order of their spawns
	seqs   []int64  // of the records of its calls
	blobs  []string // paths of those that a call can refer to, in the order in which the agent learned them
	blobIn blobDir
	server string // address of the external server
	other  func() *dweller
	sent   int
	tools  int // calls of tools
}

// newWorld starts a kernel and logs the agents in. A key's line gives each its origin.
func newWorld(t *testing.T, s *scenery, seed uint64, names ...string) *world {
	t.Helper()
	d := s.start(t)
	w := &world{t: t, operator: s.login(t, d, "operator"), turns: rand.New(rand.NewPCG(seed, 1)), agents: map[string]*dweller{}}
	for _, name := range names {
		c := s.login(t, d, name)
		pid := c.ask("Clock.Get", `{}`).Metadata.Kernel.PID
		w.operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"http":{"hosts":["127.0.0.1:*"]}}`, pid), nil)
		w.agents[name] = &dweller{
			name: name, client: c, choose: rand.New(rand.NewPCG(seed, uint64(name[0]))), pids: []int64{pid},
			blobIn: newBlobDir(d, name), server: s.server.URL,
			other: func() *dweller {
				for _, other := range w.agents {
					if other.name != name {
						return other
					}
				}
				return &dweller{}
			},
		}
	}
	return w
}

// run makes calls, except for those of agents that are not there, and returns each agent's transcript.
func (w *world) run(calls int) map[string][]string {
	transcripts := map[string][]string{}
	for i := range calls {
		name := []string{"a", "b"}[w.turns.IntN(2)]
		if i%500 == 499 {
			testkit.Must(w.t, w.operator.conn.SetDeadline(time.Now().Add(testkit.Patience)))
			w.operator.call("Clock.Advance", `{"ticks":1}`, nil)
		}
		if agent := w.agents[name]; agent != nil {
			transcripts[name] = append(transcripts[name], agent.act(w.t))
		}
	}
	return transcripts
}

// foreign returns a PID that the agent cannot know: one of the other's, or one that never existed.
func (d *dweller) foreign() int64 {
	n := d.choose.IntN(1 << 16)
	if others := d.other().pids; len(others) > 0 {
		return others[n%len(others)]
	}
	return 900_000 + int64(n)
}

// act makes a call, and returns it with its answer in a form that does not depend on the kernel's numbers.
func (d *dweller) act(t *testing.T) string {
	t.Helper()
	on := d.subject()
	typ, data := d.pick(on)
	extra := fmt.Sprintf(`,"correlation":"talk-%d"`, d.choose.IntN(20))
	// Whether two bodies are equal must not depend on the number of the other's PIDs and blobs.
	if key := d.choose.IntN(500); key < 50 && !on.strange {
		extra += fmt.Sprintf(`,"idempotencyKey":"key-%d"`, key)
	}
	row, _ := schema.Lookup(typ)
	d.sent++
	if err := d.client.conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil { // for each call, not for all of them
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
	testkit.Must(t, json.Unmarshal(a.Data, &value))
	if told, ok := value.(map[string]any); ok && a.Kind == "reply" {
		d.learn(typ, told)
	}
	var asked any
	testkit.Must(t, json.Unmarshal([]byte(data), &asked))
	words := words{t: t, own: d.pids, foreign: on.foreign, blobs: d.blobIn}
	said, err := json.Marshal([]any{typ, words.of("", asked), a.Kind, words.of("", value)})
	testkit.Must(t, err)
	return string(said)
}

// learn stores what later calls can name from a reply: a child, or a blob whose content has no number of the kernel.
func (d *dweller) learn(typ string, told map[string]any) {
	if told["child_pid"] != nil {
		if pid := int64(told["child_pid"].(float64)); !slices.Contains(d.pids, pid) { // otherwise a key was used again
			d.pids = append(d.pids, pid)
		}
	}
	for _, member := range []string{"bodyRef", "valueRef", "contentRef"} {
		ref, ok := told[member].(map[string]any)
		if path, _ := ref["path"].(string); ok && typ != "Audit.Log" && !slices.Contains(d.blobs, path) {
			d.blobs = append(d.blobs, path)
		}
	}
}

package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// found returns the results of a search: for each call its PID and its type, and the data if it is shown.
func (c *client) found(query string) (calls []string) {
	c.t.Helper()
	var out schema.EventSearchOutput
	c.call("Event.Search", fmt.Sprintf(`{"query":%q,"limit":100}`, query), &out)
	if len(out.Scores) != len(out.Events) || !slices.IsSortedFunc(out.Scores, func(a, b float64) int { return int((b - a) * 1e9) }) {
		c.t.Fatalf("%s: scores %v of %d events", query, out.Scores, len(out.Events))
	}
	for _, e := range out.Events {
		if e.Type == "Syscall.Describe" || e.Type == "Syscall.Spawn" { // they name the searched words
			continue
		}
		calls = append(calls, fmt.Sprint(e.PID, " ", e.Type, " ", string(e.Data)))
	}
	slices.Sort(calls)
	return calls
}

// TestSearchOfAgents (EVENT 10.6, PROTOCOL 12): an agent finds its own calls and those of its descendants, and their data
// only if the gate would let it read that now: a word in other data does not find the call. The operator finds all.
func TestSearchOfAgents(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	const searcher = `{"allowed_syscalls":["Event.Search","Memory.*","Syscall.SendMsg","Syscall.Spawn"]}`
	parent, sibling := operator.spawn(0, searcher), operator.spawn(0, searcher)
	child := operator.spawn(parent, searcher)
	on := map[int64]*client{}
	for _, pid := range []int64{parent, sibling, child} {
		on[pid] = p.connect(pid)
		on[pid].call("Memory.Set", fmt.Sprintf(`{"key":"k/%d","value":"needle"}`, pid), nil)
		on[pid].call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":"needle in mail"}`, sibling), nil)
	}
	set := func(pid int64) string { return fmt.Sprintf(`%d Memory.Set {"key":"k/%[1]d","value":"needle"}`, pid) }
	mail := func(pid int64) string {
		return fmt.Sprintf(`%d Syscall.SendMsg {"receiver_pid":%d,"payload":"needle in mail"}`, pid, sibling)
	}
	want := func(who string, got []string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s finds\n%s\nwant\n%s", who, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	want("operator", operator.found("needle"), set(parent), mail(parent), set(child), mail(child), set(sibling), mail(sibling))
	want("parent", on[parent].found("needle"), set(parent), mail(parent), set(child)) // it may not read what its child sent to others
	want("parent, by type", on[parent].found("SendMsg"), mail(parent), fmt.Sprint(child, " Syscall.SendMsg null"))
	want("child", on[child].found("needle"), set(child), mail(child))
	want("sibling", on[sibling].found("needle"), set(sibling), mail(sibling))

	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Event.Search","Memory.Set"]}`, parent), nil)
	want("parent without Memory.Get", on[parent].found("needle"))
	want("parent without Memory.Get, by type", on[parent].found("Memory.Set"), fmt.Sprint(parent, " Memory.Set null"), fmt.Sprint(child, " Memory.Set null"))
	if a := on[child].ask("Event.Search", `{"query":"\"open"}`); a.Kind != "error" {
		t.Errorf("an open quotation mark is answered %s", a.Data)
	}
}

// TestSearchInOsEvent: an OsEvent answer contains OsEvents (EVENT 10.6).
func TestSearchInOsEvent(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.call("Memory.Set", `{"key":"k","value":"needle"}`, nil)
	a := c.speak(schema.OsEvent, "Event.Search", `{"query":"needle"}`, "")
	if !strings.Contains(string(a.Data), `{"events":[{"type":"command","name":"Memory.Set","payload":{"key":"k","value":"needle"},"metadata":{"id":`) {
		t.Errorf("got %s", a.Data)
	}
}

// TestGraphOfAgents (EVENT 10.5): the graph has what the caller may see, with edges by causation and for spawns and mail,
// and no call after itself, whatever ids the clients use.
func TestGraphOfAgents(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	const asker = `{"allowed_syscalls":["Event.Graph","Memory.*","Syscall.Spawn","Syscall.SendMsg"]}`
	parent, sibling := operator.spawn(0, asker), operator.spawn(0, asker)
	on, other := p.connect(parent), p.connect(sibling)
	flow := func(causation string) string { return fmt.Sprintf(`,"correlation":"flow","causation":%q`, causation) }
	spawned := on.askWith("Syscall.Spawn", `{"child_agent_id":"c","capabilities":{"allowed_syscalls":["Memory.*"]}}`, flow("nobody"))
	cause := spawned.Metadata.Causation
	child := p.connect(parent + 2)
	child.askWith("Memory.Set", `{"key":"a","value":1}`, `,"correlation":"flow"`)
	on.askWith("Memory.Set", `{"key":"b","value":1}`, flow(cause))
	other.askWith("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, parent), flow(cause))

	graph := func(c *client) (g schema.EventGraphOutput, types []string) {
		t.Helper()
		c.call("Event.Graph", `{"correlationId":"flow"}`, &g)
		at := map[string]schema.GraphNode{}
		for _, n := range g.Nodes {
			at[n.ID] = n
		}
		for _, e := range g.Edges {
			from, to := at[e.From], at[e.To]
			if from.ID == "" || to.ID == "" {
				t.Errorf("edge %+v has an end that is not a node", e)
			}
			types = append(types, fmt.Sprint(from.Kind, from.Type, from.PID, " ", e.Kind, " ", to.Kind, to.Type, to.PID))
		}
		return g, types
	}
	g, edges := graph(operator)
	for _, want := range []string{
		fmt.Sprintf("callSyscall.Spawn%d spawned process%d", parent, parent+2),
		fmt.Sprintf("process%d made callMemory.Set%d", parent+2, parent+2),
		fmt.Sprintf("callSyscall.Spawn%d claimed callMemory.Set%d", parent, parent),
		fmt.Sprintf("callSyscall.Spawn%d claimed callSyscall.SendMsg%d", parent, sibling),
		fmt.Sprintf("callSyscall.SendMsg%d delivered process%d", sibling, parent),
	} {
		if !slices.Contains(edges, want) {
			t.Errorf("no edge %q in\n%s", want, strings.Join(edges, "\n"))
		}
	}
	mine, _ := graph(on)
	if len(mine.Nodes) >= len(g.Nodes) {
		t.Errorf("the agent sees %d of %d nodes", len(mine.Nodes), len(g.Nodes))
	}
	for _, n := range mine.Nodes {
		if n.PID == sibling {
			t.Errorf("the agent sees %+v", n)
		}
	}
	theirs, _ := graph(other)
	for _, n := range theirs.Nodes {
		if n.PID != sibling && (n.Kind == schema.NodeCall || n.Agent != "") {
			t.Errorf("the sibling sees %+v", n)
		}
	}
}

// TestClaimedCauses: what a client writes as the cause of its call is told apart from what the kernel knows, and is none if it was called
// later. A message id that another process has used first, or after, leads to nobody else's call.
func TestClaimedCauses(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	const all = `{"allowed_syscalls":["*"]}`
	a, b := operator.spawn(0, all), operator.spawn(0, all)
	onA, onB := p.connect(a), p.connect(b)
	send := func(c *client, id, typ, data, causation string) int64 {
		t.Helper()
		c.write(fmt.Sprintf(`{"kind":"command","type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1,"correlation":"flow"%s}}`+"\n", typ, data, id, causation))
		return int64(c.next().Metadata.Kernel.Seq)
	}
	const cause = `,"causation":%q`
	early := send(operator, "early", "Memory.Set", `{"key":"e","value":1}`, "")
	claim := send(onA, "claim", "Memory.Set", `{"key":"c","value":1}`, fmt.Sprintf(cause, "early"))
	before := send(onA, "before", "Memory.Set", `{"key":"b","value":1}`, fmt.Sprintf(cause, "after"))
	after := send(operator, "after", "Memory.Set", `{"key":"a","value":1}`, "")
	mail := send(onA, "mail", "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, b), "")
	forged := send(onB, "mail", "Memory.Set", `{"key":"f","value":1}`, "")
	got := send(onB, "got", "Ipc.Receive", `{}`, fmt.Sprintf(cause, "early"))
	born := send(operator, "born", "Syscall.Spawn", `{"child_agent_id":"c","capabilities":{"allowed_syscalls":["Memory.*"]}}`, "")
	send(onB, "born", "Memory.Set", `{"key":"g","value":1}`, "")
	child := p.connect(b + 1)
	own := send(child, "own", "Memory.Set", `{"key":"h","value":1}`, "")

	show := func(seq int64) (out schema.AuditShowOutput) {
		t.Helper()
		operator.call("Audit.Show", fmt.Sprintf(`{"seq":%d}`, seq), &out)
		return out
	}
	related := func(seq int64, relation string) (list []string) {
		t.Helper()
		out := show(seq)
		for _, r := range out.Related {
			if r.Relation == relation {
				list = append(list, fmt.Sprint(r.Entry.Seq, r.Claimed))
			}
		}
		return list
	}
	for _, tt := range []struct {
		what     string
		seq      int64
		relation string
		want     []string
	}{
		{"a claim", claim, "cause", []string{fmt.Sprint(early, true)}},
		{"a cause that came later", before, "cause", nil},
		{"mail and a claim", got, "cause", []string{fmt.Sprint(mail, false), fmt.Sprint(early, true)}},
		{"effects that are claimed", early, "effect", []string{fmt.Sprint(claim, true), fmt.Sprint(got, true)}},
		{"an effect that came before", after, "effect", nil},
		{"a spawn", own, "spawned", []string{fmt.Sprint(born, false)}},
		{"a forged message", forged, "cause", nil},
	} {
		if list := related(tt.seq, tt.relation); !slices.Equal(list, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, list, tt.want)
		}
	}
	if later := show(before).CauseLater; later != after {
		t.Errorf("the later cause is %d, want %d", later, after)
	}
	var log schema.AuditLogOutput
	operator.call("Audit.Log", `{"limit":1000}`, &log)
	for _, e := range log.Entries {
		if want := e.Seq == claim || e.Seq == before || e.Seq == got; e.Claimed != want {
			t.Errorf("entry %d %s of %q: claimed %v", e.Seq, e.Type, e.Causation, e.Claimed)
		}
	}
	var graph schema.EventGraphOutput
	operator.call("Event.Graph", `{"correlationId":"flow"}`, &graph)
	name := func(seq int64) string { return fmt.Sprintf("c%d", seq) }
	for _, want := range []schema.GraphEdge{
		{From: name(early), To: name(claim), Kind: schema.EdgeClaimed},
		{From: name(early), To: name(got), Kind: schema.EdgeClaimed},
		{From: fmt.Sprintf("p%d", b), To: name(got), Kind: schema.EdgeMade},
		{From: name(mail), To: fmt.Sprintf("p%d", b), Kind: schema.EdgeDelivered},
	} {
		if !slices.Contains(graph.Edges, want) {
			t.Errorf("no edge %+v in %+v", want, graph.Edges)
		}
	}
	for _, n := range graph.Nodes {
		if n.Later != (n.Seq == before) {
			t.Errorf("node %+v", n)
		}
	}
	for _, e := range graph.Edges {
		if e.From == name(after) || e.To == name(before) && e.Kind != schema.EdgeMade {
			t.Errorf("edge %+v", e)
		}
	}
}

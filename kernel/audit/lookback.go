package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Bounds of a graph: its nodes, and how many calls beyond are counted.
const (
	maxNodes = 2000
	maxMore  = 10_000
)

func (d *Domain) graph(call *kernel.Call, in *schema.EventGraphInput) (out schema.EventGraphOutput, err error) {
	reach := d.reach(call.PID, nil)
	kernel.Compute(call, func(ctx context.Context) (schema.EventGraphOutput, error) {
		g := graph{
			processes: d.processes, reach: reach, calls: make(map[string][]int), of: make(map[int64]int),
			nodes: []schema.GraphNode{}, edges: []schema.GraphEdge{},
		}
		asked := &schema.AuditLogInput{Correlation: &in.CorrelationID}
		err := d.journal.Each(ctx, call, asked, reach, func(e *schema.AuditEntry) bool {
			if len(g.nodes) < maxNodes {
				g.add(e)
			} else {
				g.more++
			}
			return g.more < maxMore
		})
		if err != nil {
			return schema.EventGraphOutput{}, err
		}
		g.connect()
		archived, err := d.journal.Archived(call.PID, 1)
		if err != nil {
			return schema.EventGraphOutput{}, err
		}
		if in.Format != nil && *in.Format == "mermaid" {
			return schema.EventGraphOutput{Mermaid: g.mermaid(), More: g.more, Archived: archived}, nil
		}
		return schema.EventGraphOutput{Nodes: g.nodes, Edges: g.edges, More: g.more, Archived: archived}, nil
	})
	return out, nil
}

// graph is the causal graph of a correlation.
type graph struct {
	processes kernel.Processes
	reach     func(pid int64) bool // whose names may be seen

	nodes []schema.GraphNode
	edges []schema.GraphEdge
	more  int64
	calls map[string][]int // nodes of the calls by message id: a client may give an id twice
	of    map[int64]int    // nodes of the processes by PID
}

// begun is the entry at which a call began.
func begun(n *schema.GraphNode) int64 {
	if n.Intent != 0 {
		return n.Intent
	}
	return n.Seq
}

// add adds a call, and the processes that it made or sent mail to.
func (g *graph) add(e *schema.AuditEntry) {
	n := schema.GraphNode{
		ID: "c" + strconv.FormatInt(e.Seq, 10), Kind: schema.NodeCall, Type: e.Type, PID: e.PID, Agent: g.name(e.PID), Seq: e.Seq,
		Intent: e.Intent, MessageID: e.ID, Causation: string(e.Causation), Claimed: e.Claimed, Time: e.Time, LatencyUS: e.LatencyUS, Status: e.Status,
		Error: string(e.Error), ErrorID: e.ErrorID,
	}
	if e.ID != "" {
		g.calls[e.ID] = append(g.calls[e.ID], len(g.nodes))
	}
	g.nodes = append(g.nodes, n)
	if !e.Success {
		return
	}
	switch e.Type {
	case schema.SyscallSpawn.Type:
		if out, err := schema.SyscallSpawn.Decode(e.Payload); err == nil && out.Kernel == "" {
			g.leads(n.ID, out.ChildPID, schema.EdgeSpawned)
		}
	case schema.SyscallSendMsg.Type:
		if out, err := schema.SyscallSendMsg.Decode(e.Payload); err == nil && out.Status == "DELIVERED" && out.ReceiverPID != kernel.Operator && out.ReceiverKernel == "" {
			g.leads(n.ID, out.ReceiverPID, schema.EdgeDelivered)
		}
	case schema.IPCBroadcast.Type:
		if out, err := schema.IPCBroadcast.Decode(e.Payload); err == nil {
			for _, pid := range out.Delivered {
				g.leads(n.ID, pid, schema.EdgeDelivered)
			}
		}
	}
}

func (g *graph) name(pid int64) string {
	if p := g.processes.Process(pid); p != nil && g.reach(pid) {
		return p.AgentID
	}
	return ""
}

// leads adds an edge from a call to a process.
func (g *graph) leads(call string, pid int64, kind string) {
	i, ok := g.of[pid]
	if !ok {
		if len(g.nodes) == maxNodes {
			return
		}
		i = len(g.nodes)
		g.of[pid] = i
		g.nodes = append(g.nodes, schema.GraphNode{ID: "p" + strconv.FormatInt(pid, 10), Kind: schema.NodeProcess, PID: pid, Agent: g.name(pid)})
	}
	g.edges = append(g.edges, schema.GraphEdge{From: call, To: g.nodes[i].ID, Kind: kind})
}

// connect adds the edges to calls: from the call that is the cause, if it began before; and from the process that made the call, if
// the kernel knows no other cause and the graph says where that came from. So no call is behind itself, whatever ids clients give.
func (g *graph) connect() {
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.Kind != schema.NodeCall {
			continue
		}
		cause := -1
		for _, k := range g.calls[n.Causation] {
			if began := begun(&g.nodes[k]); began < begun(n) && (cause < 0 || began > begun(&g.nodes[cause])) {
				cause = k
			}
		}
		n.Later = n.Claimed && cause < 0 && n.Causation != n.MessageID && len(g.calls[n.Causation]) > 0
		if cause >= 0 {
			kind := schema.EdgeCaused
			if n.Claimed {
				kind = schema.EdgeClaimed
			}
			g.edges = append(g.edges, schema.GraphEdge{From: g.nodes[cause].ID, To: n.ID, Kind: kind})
		}
		if process, known := g.of[n.PID]; known && process < i && (cause < 0 || n.Claimed) {
			g.edges = append(g.edges, schema.GraphEdge{From: g.nodes[process].ID, To: n.ID, Kind: schema.EdgeMade})
		}
	}
}

// mermaid is the graph as a flowchart of Mermaid.
func (g *graph) mermaid() string {
	var b strings.Builder
	b.WriteString("graph TD\n")
	for i := range g.nodes {
		n := &g.nodes[i]
		open, end := `["`, `"]`
		if n.Kind == schema.NodeProcess {
			open, end = `(["`, `"])`
		}
		fmt.Fprintf(&b, "  %s%s%s%s\n", n.ID, open, escaped(n.Label()), end)
	}
	for _, e := range g.edges {
		arrow := "-->"
		if e.Kind != schema.EdgeCaused {
			arrow = "-.->|" + e.Kind + "|"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", e.From, arrow, e.To)
	}
	if g.more > 0 {
		fmt.Fprintf(&b, "  more[\"… and %d more\"]\n", g.more)
	}
	return b.String()
}

// escaped is a text that means nothing to Mermaid: anything but plain characters is written by its number.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" .,:/-_·…", r):
			b.WriteRune(r)
		case quote.Hidden(r):
			b.WriteString("#65533;")
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

func (d *Domain) search(call *kernel.Call, in *schema.EventSearchInput) (out schema.EventSearchOutput, err error) {
	phrases, err := schema.ParseSearch(in.Query)
	if err != nil {
		return out, err
	}
	call.Read(func(ctx context.Context) (kernel.Result, error) {
		found, err := d.journal.Search(ctx, call, in, phrases, d.family(call.PID))
		if err != nil {
			return kernel.Result{}, err
		}
		return kernel.Result{Data: found.AppendAs(nil, call.Message.Dialect)}, nil
	})
	return out, nil
}

// family are the processes whose calls a process may see, ascending: itself and its descendants; nil: all.
func (d *Domain) family(pid int64) []int64 {
	if pid == kernel.Operator {
		return nil
	}
	pids := []int64{pid}
	for next := pid + 1; d.processes.Process(next) != nil; next++ { // a child is younger than its parent
		if kernel.Descends(d.processes, next, pid) {
			pids = append(pids, next)
		}
	}
	return pids
}

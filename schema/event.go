package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// EventSearchInput is the data of Event.Search (EVENT 10.6).
type EventSearchInput struct {
	Query string `json:"query" keep:"always" minlen:"1" maxlen:"1024" doc:"What to look for: words, all of which a call must have; \"words in quotes\" one after the other; a word that ends in * stands for all that begin with it."`
	Limit *int64 `json:"limit,omitzero" keep:"always" min:"1" max:"100" doc:"Most calls to return, 1 to 100. Default 20. Fewer come if the line would be too long."`
	Since *int64 `json:"since,omitzero" keep:"always" min:"0" doc:"Only calls at or after: Unix epoch, milliseconds."`
}

// EventSearchOutput is the answer of Event.Search.
type EventSearchOutput struct {
	Events []FoundEvent `json:"events" keep:"always" doc:"Calls that were found, the best first."`
	Scores []float64    `json:"scores" keep:"always" doc:"How well each of them fits, in the same order: BM25, higher is better."`

	Archived *Archived `json:"archived,omitzero" keep:"always" doc:"Entries that are archived: their calls are found only while the index has them and the directory is available. Absent: there are none."`
}

// FoundEvent is a call that matches a search: its message in the journal, and its outcome. In an OsEvent
// answer, kind, type and data are named type, name and payload.
type FoundEvent struct {
	Kind     string    `json:"kind" keep:"always" enum:"command query" doc:"Kind of the message."`
	Type     string    `json:"type" keep:"always" doc:"Type of the message."`
	Data     Value     `json:"data" keep:"always" doc:"Data of the message without its secrets; null: the caller may not see it."`
	Metadata FoundMeta `json:"metadata" keep:"always" doc:"Metadata of the message."`
	Seq      int64     `json:"seq" keep:"always" doc:"Number of the entry, as in Audit.Log."`
	PID      int64     `json:"pid" keep:"always" doc:"Process that the call was made as."`
	Agent    string    `json:"agent,omitzero" keep:"always" doc:"Name of that process; absent: the operator, or one that is forgotten."`
	Status   string    `json:"status" keep:"always" enum:"ok denied failed running unknown" doc:"The verdict, as in Audit.Log."`
	Error    string    `json:"error,omitzero" keep:"always" doc:"Why it failed."`
	Code     int64     `json:"code,omitzero" keep:"always" doc:"Code of that error."`
	ErrorID  string    `json:"error_id,omitzero" keep:"always" doc:"Id of that error."`
}

// FoundMeta is the metadata of a FoundEvent.
type FoundMeta struct {
	ID          string `json:"id,omitzero" keep:"always" doc:"Id of the message; absent: it has none."`
	Timestamp   int64  `json:"timestamp" keep:"always" doc:"When the kernel recorded the call: Unix epoch, milliseconds."`
	Correlation string `json:"correlation,omitzero" keep:"always" doc:"Its correlation."`
	Causation   string `json:"causation,omitzero" keep:"always" doc:"What caused it."`
	Claimed     bool   `json:"claimed,omitzero" keep:"always" doc:"Whether only the message says what caused it. Absent: the kernel knows it."`
}

// AppendAs appends the answer in the given dialect.
func (o *EventSearchOutput) AppendAs(dst []byte, d Dialect) []byte {
	if d == OsMessage {
		return appendValue(dst, o)
	}
	n := d.names()
	dst = append(dst, `{"events":[`...)
	for i := range o.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		start := true
		jsontype.Members(appendValue(nil, &o.Events[i]), func(name, value []byte) bool {
			switch string(name) {
			case "kind":
				name = []byte(n.kind)
			case "type":
				name = []byte(n.typ)
			case "data":
				name = []byte(n.data)
			}
			open := byte(',')
			if start {
				open, start = '{', false
			}
			dst = append(jsontype.AppendString(append(dst, open), string(name)), ':')
			dst = append(dst, value...)
			return true
		})
		dst = append(dst, '}')
	}
	dst = appendValue(append(dst, `],"scores":`...), o.Scores)
	if o.Archived != nil {
		dst = appendValue(append(dst, `,"archived":`...), o.Archived)
	}
	return append(dst, '}')
}

// EventGraphInput is the data of Event.Graph (EVENT 10.5).
type EventGraphInput struct {
	CorrelationID string  `json:"correlationId" keep:"always" minlen:"1" maxlen:"1024" doc:"Correlation of the calls."`
	Format        *string `json:"format,omitzero" keep:"always" enum:"json mermaid" doc:"json, the default: nodes and edges. mermaid: a flowchart as text."`
}

// EventGraphOutput is the answer of Event.Graph.
type EventGraphOutput struct {
	Nodes   []GraphNode `json:"nodes,omitzero" keep:"always" doc:"Calls, and the processes that they spawned or sent mail to, oldest first, at most 2000; of json."`
	Edges   []GraphEdge `json:"edges,omitzero" keep:"always" doc:"From causes to effects; of json. Only mail can close a cycle."`
	Mermaid string      `json:"mermaid,omitzero" keep:"always" doc:"The flowchart; of mermaid."`
	More    int64       `json:"more,omitzero" keep:"always" doc:"How many calls are left out, counted up to 10000; absent: none."`

	Archived *Archived `json:"archived,omitzero" keep:"always" doc:"Entries that are archived, whose calls are not in the graph; absent: there are none."`
}

// GraphNode is a call or a process.
type GraphNode struct {
	ID        string `json:"id" keep:"always" doc:"Name of the node in this graph: c and the entry's number for a call, p and the PID for a process."`
	Kind      string `json:"kind" keep:"always" enum:"call process" doc:"What it is."`
	Type      string `json:"type,omitzero" keep:"always" doc:"Syscall that was called."`
	PID       int64  `json:"pid" keep:"always" doc:"Process that it is, or that the call was made as; 0 is the operator."`
	Agent     string `json:"agent,omitzero" keep:"always" doc:"Name of that process; absent: the operator, or one that is forgotten."`
	Seq       int64  `json:"seq,omitzero" keep:"always" doc:"Number of the call's entry, as in Audit.Log."`
	Intent    int64  `json:"intent,omitzero" keep:"always" doc:"For a call with an effect outside the kernel: the entry that was written before the effect began."`
	MessageID string `json:"message_id,omitzero" keep:"always" doc:"Id of the call's message."`
	Causation string `json:"causation,omitzero" keep:"always" doc:"What caused the call, even if that is not in this graph."`
	Claimed   bool   `json:"claimed,omitzero" keep:"always" doc:"Whether only the message says what caused it. Absent: the kernel knows it."`
	Later     bool   `json:"later,omitzero" keep:"always" doc:"Whether what its message names as its cause was called later, so that it is none."`
	Time      int64  `json:"time,omitzero" keep:"always" doc:"When it was called, or ended if it has an intent: Unix epoch, milliseconds."`
	LatencyUS int64  `json:"latency_us,omitzero" keep:"always" doc:"How long it took, microseconds."`
	Status    string `json:"status,omitzero" keep:"always" doc:"The call's verdict, as in Audit.Log."`
	Error     string `json:"error,omitzero" keep:"always" doc:"Why it failed."`
	ErrorID   string `json:"error_id,omitzero" keep:"always" doc:"Id of that error."`
}

// The values of GraphNode.Kind, and of GraphEdge.Kind.
const (
	NodeCall    = "call"
	NodeProcess = "process"

	EdgeCaused    = "caused"
	EdgeClaimed   = "claimed"
	EdgeSpawned   = "spawned"
	EdgeDelivered = "delivered"
	EdgeMade      = "made"
)

// GraphEdge is an edge from a cause to its effect.
type GraphEdge struct {
	From string `json:"from" keep:"always" doc:"Node that it leads from."`
	To   string `json:"to" keep:"always" doc:"Node that it leads to."`
	Kind string `json:"kind" keep:"always" enum:"caused claimed spawned delivered made" doc:"caused: the call caused the later one. claimed: only the later call's message says so. spawned: the call made the process. delivered: the call sent the process mail. made: the process made the call, and the kernel knows no other cause."`
}

// Label returns the text of a node in a picture: the call, its caller, and its status if that is not ok; or the process.
func (n *GraphNode) Label() string {
	who := n.Agent
	if who == "" && n.PID != 0 {
		who = "pid " + strconv.FormatInt(n.PID, 10)
	}
	if n.Kind == NodeProcess {
		return who
	}
	label := n.Type
	if who != "" {
		label += " · " + who
	}
	if n.Status != StatusOK {
		label += " · " + n.Status
	}
	if n.Later {
		label += " · claims a later cause"
	}
	return label
}

// The syscalls of this file.
var (
	EventSearch = NewQuery[EventSearchInput, EventSearchOutput](Syscall{
		Type: "Event.Search", Domain: Audit, Alone: true,
		Script:      "scripts/event.txtar",
		Description: "Searches the record of all calls, ranked, for words in types, agents, correlations, errors and journaled data. An agent finds its own calls and those of its descendants.",
	})

	EventGraph = NewQuery[EventGraphInput, EventGraphOutput](Syscall{
		Type: "Event.Graph", Domain: Audit, Alone: true,
		Script:      "scripts/event.txtar",
		Description: "Returns the calls of a correlation as a graph of causes and effects. An agent sees its own calls and those of its descendants.",
	})
)

package export

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Position identifies an entry among those of all kernels. The zero Position is before the first entry.
type Position struct {
	Instance string `json:"instance"` // of the journal
	Epoch    int64  `json:"epoch"`
	Seq      int64  `json:"seq"`
}

// String returns the id of an entry: instance/epoch/seq.
func (p Position) String() string { return fmt.Sprintf("%s/%d/%d", p.Instance, p.Epoch, p.Seq) }

// ParsePosition parses an id.
func ParsePosition(id string) (Position, error) {
	if parts := strings.Split(id, "/"); len(parts) == 3 {
		epoch, bad := strconv.ParseInt(parts[1], 10, 64)
		seq, worse := strconv.ParseInt(parts[2], 10, 64)
		if p := (Position{parts[0], epoch, seq}); bad == nil && worse == nil && p.valid() {
			return p, nil
		}
	}
	return Position{}, fmt.Errorf("%q is not of the form instance/epoch/seq", id)
}

func (p Position) valid() bool { return p.Instance != "" && p.Epoch > 0 && p.Seq > 0 }

// Record is an entry of the audit log.
type Record struct {
	At    Position
	Entry schema.AuditEntry // without request and payload, unless Options.Arguments
	Facts Facts
}

// ID returns the record's id.
func (r *Record) ID() string { return r.At.String() }

// recordLine is a record as a line of JSON.
type recordLine struct {
	ID       string            `json:"id"`
	Instance string            `json:"instance"`
	Epoch    int64             `json:"epoch"`
	Seq      int64             `json:"seq"`
	Entry    schema.AuditEntry `json:"entry"`
}

// Line returns the record as one line of JSON, without the line break. It begins with the id.
func (r *Record) Line() ([]byte, error) {
	text, err := schema.Marshal(&recordLine{r.ID(), r.At.Instance, r.At.Epoch, r.At.Seq, r.Entry})
	if err != nil {
		return nil, fmt.Errorf("write record %s: %w", r.ID(), err)
	}
	return text, nil
}

// LineID returns the id of a line that Line made.
func LineID(text []byte) (string, error) {
	var members *map[string]schema.Value
	if schema.Valid(text) {
		members = decoded[map[string]schema.Value](text)
	}
	if members == nil {
		return "", errors.New("it is not a JSON object")
	}
	id := decoded[string]((*members)["id"])
	if id == nil {
		return "", errors.New("it has no id")
	}
	return *id, nil
}

// Facts describe the object of a call without its arguments.
type Facts struct {
	Tool     string // name of the called tool; "": none
	Host     string // agent host that has the tool built in; "": none
	MCP      string // MCP server that has the tool; "": none
	Upstream string // upstream of a request; "": none
	Usage    *schema.NetUsage
	Status   int64 // of an HTTP response; 0: none
	Server   string
	Port     int64
}

// factsOf returns the facts of an entry, as far as its request and payload are recorded.
func factsOf(e *schema.AuditEntry) (f Facts) {
	switch e.Type {
	case schema.CallType:
		if in := decoded[schema.CallInput](e.Request); in != nil {
			f.Tool, _, _ = strings.Cut(in.Syscall, "?")
		}
	case schema.HostToolUse.Type:
		if in := decoded[schema.ToolUseInput](e.Request); in != nil {
			f.Tool, f.Host = in.Tool, in.Host
		}
	case schema.NetRequest.Type:
		if out := decoded[schema.NetRequestOutput](e.Payload); out != nil {
			f.Upstream, f.Usage, f.Status = out.Upstream, out.Usage, out.Status
		} else if in := decoded[schema.NetRequestInput](e.Request); in != nil {
			f.Upstream = in.Upstream
		}
	case schema.NetConnect.Type:
		if out := decoded[schema.NetConnectOutput](e.Payload); out != nil {
			f.Server, f.Port = out.Host, out.Port
		} else if in := decoded[schema.NetConnectInput](e.Request); in != nil {
			f.Server, f.Port = in.Host, in.Port
		}
	case schema.HTTPFetch.Type:
		if out := decoded[schema.HTTPFetchOutput](e.Payload); out != nil {
			f.Status = out.Status
		}
	}
	if entry, ok := schema.MCPEntry(f.Tool); ok && f.Host == "" {
		f.MCP = strings.TrimPrefix(entry, "mcp/")
		path, _ := schema.ToolPath(f.Tool)
		f.Tool = strings.TrimPrefix(strings.TrimPrefix(path, entry), "/")
	}
	if _, known := schema.Lookup(e.Type); !known { // a registered syscall is a tool
		f.Tool = e.Type
	}
	return f
}

// decoded decodes a value as a T; nil if it is not one.
func decoded[T any](raw schema.Value) *T {
	if len(raw) == 0 {
		return nil
	}
	value, err := schema.TypeOf[T]().Decode(raw)
	if err != nil {
		return nil
	}
	return value.(*T)
}

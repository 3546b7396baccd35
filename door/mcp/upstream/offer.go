package upstream

import (
	"cmp"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsonschema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Tool is a tool that a server offers, with the fields of a registration.
type Tool struct {
	Name        string       `json:"name"`
	Kind        string       `json:"kind,omitzero"` // query if it declares that it only reads
	Description string       `json:"description,omitzero"`
	Input       schema.Value `json:"input,omitzero"`
	Output      schema.Value `json:"output,omitzero"`
	Unfit       string       `json:"unfit,omitzero"` // why it cannot be registered
}

// Offer is the answer of a call of an entry: a page of the present offer of its server.
type Offer struct {
	Away       string `json:"away,omitzero"`       // why the server is not available
	Executable string `json:"executable,omitzero"` // digest of the server's program, if it differs from the pin
	Tools      []Tool `json:"tools"`
	Next       int64  `json:"next,omitzero"` // of the next page; 0 on the last page
}

// OfferInput is the data of a call of an entry.
type OfferInput struct {
	After int64 `json:"after,omitzero"` // Next of the previous page
}

// pageSize is the approximate size of a page of tools in bytes: it must fit a line.
const pageSize = 256 << 10

// page returns the page of tools that begins at an index.
func page(tools []Tool, after int64) *Offer {
	out, size := &Offer{Tools: []Tool{}}, 0
	for i := max(0, after); i < int64(len(tools)); i++ {
		t := tools[i]
		if size > pageSize {
			out.Next = i
			break
		}
		size += len(t.Description) + len(t.Input) + len(t.Output) + len(t.Unfit) + 100
		out.Tools = append(out.Tools, t)
	}
	return out
}

// Bounds of a registration.
const (
	longestName        = 128
	longestDescription = 4096
	longestSchemas     = 16 << 10
)

// toolOf converts a tool of a server to a Tool. If it cannot be registered, Unfit says why.
func toolOf(entry string, t *sdk.Tool) Tool {
	path := entry + "/" + t.Name
	own := Tool{Name: fault.Clip(t.Name)}
	if under, ok := schema.MCPEntry(path); !ok || under != entry || strings.Contains(t.Name, "/") {
		own.Unfit = "a name must have only letters, digits, -, _ and ."
		return own
	}
	input, err := schema.Marshal(t.InputSchema)
	if err != nil || len(input) == 0 || input[0] != '{' {
		own.Unfit = "its input schema is not an object"
		return own
	}
	output, err := outputOf(t)
	if err != nil {
		own.Unfit = "its output schema is not a JSON value"
		return own
	}
	own = Tool{Name: t.Name, Kind: "command", Description: cmp.Or(t.Description, "Tool "+t.Name+" of an MCP server."), Input: input, Output: output}
	if t.Annotations != nil && t.Annotations.ReadOnlyHint {
		own.Kind = "query"
	}
	if own.Unfit = own.unfit(path); own.Unfit != "" {
		own.Description, own.Input, own.Output = "", nil, nil
	}
	return own
}

// unfit returns why a tool cannot be registered, "" if it can.
func (t *Tool) unfit(path string) string {
	switch {
	case len(path) > longestName:
		return fmt.Sprintf("its name has %d bytes, more than the limit of %d", len(path), longestName)
	case len(t.Description) > longestDescription:
		return fmt.Sprintf("its description has %d bytes, more than the limit of %d", len(t.Description), longestDescription)
	case len(t.Input)+len(t.Output) > longestSchemas:
		return fmt.Sprintf("its schemas have %d bytes, more than the limit of %d", len(t.Input)+len(t.Output), longestSchemas)
	}
	for _, text := range []schema.Value{t.Input, t.Output} {
		if !schema.ValidWithin(text, schema.MaxKeptDepth) {
			return "its schemas are nested too deep"
		}
		if _, wrong := jsonschema.Compile(text); wrong != nil {
			return "its schema cannot be checked: " + strings.TrimSpace(wrong.At+" "+wrong.Why)
		}
	}
	return ""
}

// outputOf returns the schema of a tool's answer, which is an MCP result. It includes the server's schema of the structured content, so
// that this is pinned too, under a member that is not checked, because its references are to another document.
func outputOf(t *sdk.Tool) (schema.Value, error) {
	out := map[string]any{
		"type": "object", "required": []string{"content"}, "properties": map[string]any{"content": map[string]any{"type": "array"}},
	}
	if t.OutputSchema != nil {
		out["outputSchema"] = t.OutputSchema
	}
	return schema.Marshal(out)
}

// Registration returns the registration of a tool below an entry.
func (t *Tool) Registration(entry string) *schema.Registration {
	return &schema.Registration{Name: entry + "/" + t.Name, Kind: t.Kind, Description: t.Description, Input: t.Input, Output: t.Output}
}

// Register returns the data that registers a tool.
func (t *Tool) Register(entry string) *schema.RegisterInput {
	return registers(t.Registration(entry))
}

func registers(r *schema.Registration) *schema.RegisterInput {
	provider := schema.Connection
	return &schema.RegisterInput{Name: r.Name, Kind: &r.Kind, Description: &r.Description, Input: r.Input, Output: r.Output, Provider: &provider}
}

// Entry returns the data that registers an entry. executable is the digest of the pinned program; "" for
// no pin.
func Entry(entry, executable string) *schema.RegisterInput {
	input := schema.Value(`{"type":"object"}`)
	if executable != "" {
		input = schema.Value(`{"type":"object","executable":"` + executable + `"}`)
	}
	return registers(&schema.Registration{
		Name: entry, Kind: "query", Description: "The present offer of the MCP server. For the operator: pwos mcp diff.", Input: input, Output: schema.Value(`{}`),
	})
}

// Pinned returns the digest of the pinned program from the input schema of an entry; "" if there is none.
func Pinned(input schema.Value) string {
	type pin struct {
		Type       string `json:"type"`
		Executable string `json:"executable,omitzero"`
	}
	in, err := schema.TypeOf[pin]().Decode(input)
	if err != nil {
		return ""
	}
	return in.(*pin).Executable
}

// Command returns a command about a server, such as "pwos mcp diff fs", for a message.
func Command(verb, server string) string { return quote.Command("pwos", "mcp", verb, server) }

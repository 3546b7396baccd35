package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// tool is a syscall that is offered to hosts as a tool.
type tool struct {
	name        string
	target      string // the type of the syscall, or the path of a user-space syscall
	path        bool   // target is the path of a user-space syscall
	wrapped     bool   // the arguments have the input as member input, because MCP allows only objects
	kind        schema.Kind
	description string
	input       schema.Value // JSON Schema of the arguments
	revoked     bool
}

// name returns the name of a target, which stays the same while the bridge runs. The caller holds mu.
func (b *Bridge) name(target string) string {
	if name, ok := b.names[target]; ok {
		return name
	}
	name, marked := schema.ServedName(target)
	if b.offered[name] != nil {
		name = marked
	}
	b.names[target] = name
	return name
}

// offer updates the tools to the list of what the process may call.
func (b *Bridge) offer(ctx context.Context, list *schema.ListOutput) {
	b.mu.Lock()
	b.may = list
	b.mu.Unlock()
	current := make(map[string]bool)
	for _, typ := range list.Syscalls {
		if schema.Served(typ) {
			current[typ] = true
			b.add(typ, func() *tool { return b.describe(ctx, typ) })
		}
	}
	for _, path := range list.Paths {
		if !strings.HasSuffix(path, "*") { // the kernel also lists each syscall that is registered below such a path
			current[path] = true
			b.add(path, func() *tool { return b.describePath(ctx, path) })
		}
	}
	b.mu.Lock()
	var revoked []*tool
	for _, t := range b.offered {
		if !t.revoked && !current[t.target] {
			was := *t
			was.revoked = true
			b.offered[t.name] = &was
			revoked = append(revoked, &was)
		}
	}
	b.mu.Unlock()
	for _, t := range revoked {
		b.show(t)
	}
	b.adopted(ctx)
	select {
	case <-b.listed:
	default:
		close(b.listed)
	}
}

// add offers the tool of a target, unless it is offered already. It calls describe for a new or revoked tool.
func (b *Bridge) add(target string, describe func() *tool) {
	b.mu.Lock()
	name := b.name(target)
	was := b.offered[name]
	b.mu.Unlock()
	var t *tool
	switch {
	case was == nil || was.revoked: // the description may have changed since
		t = describe()
		t.name = name
	default:
		return
	}
	b.mu.Lock()
	b.offered[name] = t
	b.mu.Unlock()
	b.show(t)
}

// show adds a tool to the server's list, or replaces it there.
func (b *Bridge) show(t *tool) {
	description := t.description
	if t.revoked {
		description = "Not granted at the moment: a call is refused, and its error tells how the operator can allow it. " + description
	}
	hints := &sdk.ToolAnnotations{ReadOnlyHint: t.kind == schema.KindQuery}
	if row, ok := schema.Lookup(t.target); ok && row.Outcome == "" {
		hints.OpenWorldHint = new(bool) // false: it has no effects outside the kernel
	}
	b.server.AddTool(&sdk.Tool{
		Name: t.name, Title: t.target, Description: description, InputSchema: t.input, Annotations: hints,
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return b.call(ctx, req, t), nil
	})
}

// anyObject is the schema of unknown arguments.
const anyObject = `{"type":"object"}`

// describe returns the tool of a syscall: from the table, or with Syscall.Describe if the table does not have it.
func (b *Bridge) describe(ctx context.Context, typ string) *tool {
	if row, ok := schema.Lookup(typ); ok {
		return &tool{target: typ, kind: row.Kind, description: row.Description, input: row.ToolSchema()}
	}
	t := &tool{target: typ, kind: schema.KindCommand, description: "Syscall " + typ + ".", input: schema.Value(anyObject)}
	data, err := schema.SyscallDescribe.Encode(&schema.DescribeInput{Name: typ})
	if err != nil {
		return t
	}
	answer, err := b.link.do(ctx, schema.KindQuery, schema.SyscallDescribe.Type, data)
	if err != nil {
		return t
	}
	if d, err := schema.SyscallDescribe.Decode(answer.Data); err == nil {
		t.description = d.Description
		if d.Kind == "query" {
			t.kind = schema.KindQuery
		}
		t.takes(d.Input)
	}
	return t
}

// describePath returns the tool of a user-space syscall, with the description that the syscall itself returns. If it returns
// none, the tool accepts any object.
func (b *Bridge) describePath(ctx context.Context, path string) *tool {
	t := &tool{target: path, path: true, kind: schema.KindCommand, description: "User-space syscall " + path + ".", input: schema.Value(anyObject)}
	yes := true
	data, err := schema.SyscallCall.Encode(&schema.CallInput{Syscall: userSpace(path), Describe: &yes})
	if err != nil {
		return t
	}
	answer, err := b.link.do(ctx, schema.KindCommand, schema.CallType, data)
	if err != nil {
		return t
	}
	if d, err := schema.TypeOf[schema.ToolDescription]().Decode(answer.Data); err == nil {
		d := d.(*schema.ToolDescription)
		t.description = d.Description
		t.takes(d.Input)
	}
	return t
}

// takes sets the input schema of a tool. A schema of another type than object is wrapped in an object.
func (t *tool) takes(input schema.Value) {
	members, err := schema.TypeOf[map[string]schema.Value]().Decode([]byte(cmp.Or(string(input), "{}")))
	if err != nil {
		return
	}
	if string((*members.(*map[string]schema.Value))["type"]) == `"object"` {
		t.input = input
		return
	}
	t.wrapped = true
	t.input = schema.Value(`{"type":"object","properties":{"input":` + cmp.Or(string(input), "{}") + `},"required":["input"],"additionalProperties":false}`)
}

// userSpace returns a path in the form that Syscall.Call takes.
func userSpace(path string) string { return "os/" + path }

// unoffered returns the tool of a syscall that is not offered, so that the kernel answers its call with the reason and
// the fix. It returns nil if the name is offered or is not the name of a syscall.
func (b *Bridge) unoffered(name string) *tool {
	b.mu.Lock()
	offered := b.offered[name] != nil
	b.mu.Unlock()
	if offered {
		return nil
	}
	row, ok := schema.Lookup(strings.Replace(name, "_", ".", 1))
	if !ok || !schema.Served(row.Type) {
		return nil
	}
	return &tool{name: name, target: row.Type, kind: row.Kind}
}

// call calls the syscall of a tool. It returns an error as a result, so that the model sees it.
func (b *Bridge) call(ctx context.Context, req *sdk.CallToolRequest, t *tool) *sdk.CallToolResult {
	typ, kind, data := t.target, t.kind, slices.Clone(req.Params.Arguments)
	if len(data) == 0 || string(data) == "null" {
		data = []byte("{}")
	}
	if t.path {
		var err error
		if data, err = t.pathCall(data); err != nil {
			return failed(err)
		}
		typ, kind = schema.CallType, schema.KindCommand
	}
	b.acknowledge(ctx)
	given := data
	data = b.receiving(typ, data)
	var answer schema.Message
	var err error
	if b.trusted(req.Session) {
		var ask *sdk.CallToolResult
		if ask, answer, err = b.ask(ctx, req, kind, typ, data); ask != nil {
			return ask
		}
	} else {
		answer, err = b.link.doReporting(ctx, kind, typ, data, reporting(ctx, req))
	}
	if err != nil {
		return failed(err)
	}
	if len(data) != len(given) {
		b.received(answer.Data)
	}
	if typ == schema.KernelIngest.Type {
		b.ingested(answer.Data)
	}
	if _, ok := schema.MCPEntry(t.target); ok { // the answer is an MCP result already
		result := new(sdk.CallToolResult)
		if result.UnmarshalJSON(answer.Data) == nil && result.Content != nil {
			return result
		}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(answer.Data)}}}
}

// reporting returns a function that sends a host the progress of its call; nil if the host did not
// request progress.
func reporting(ctx context.Context, req *sdk.CallToolRequest) func(*schema.ProgressedEvent) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(e *schema.ProgressedEvent) {
		n := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: e.Progress}
		if e.Total != nil {
			n.Total = *e.Total
		}
		if e.Message != nil {
			n.Message = *e.Message
		}
		_ = req.Session.NotifyProgress(ctx, n) // fails if the request is over
	}
}

// pathCall returns the data of the Syscall.Call that calls a user-space syscall with the arguments of a tool call.
func (t *tool) pathCall(arguments []byte) ([]byte, error) {
	members, err := schema.TypeOf[map[string]schema.Value]().Decode(arguments)
	if err != nil {
		return nil, err
	}
	input := schema.Value(arguments)
	if t.wrapped {
		if input = (*members.(*map[string]schema.Value))["input"]; input == nil {
			return nil, errors.New("input is missing")
		}
	}
	return schema.SyscallCall.Encode(&schema.CallInput{Syscall: userSpace(t.target), Args: []schema.Value{input}})
}

// failed returns the result of a failed call, with the message, fix, id and code of the error.
func failed(err error) *sdk.CallToolResult {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		text = f.Error()
		if f.ID != "" {
			text += fmt.Sprintf(" [%s, %d]", f.ID, f.Code())
		}
	}
	if said := client.Answered(err); said != nil {
		text = said.Error() + fmt.Sprintf(" [%s, %d]", said.ID, said.Code())
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text + door.Absent(err)}}}
}

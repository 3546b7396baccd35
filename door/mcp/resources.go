package mcp

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// URIs of resources. A read of a resource is a call of the process.
const (
	memoryPrefix   = "pwos:///memory/"
	memoryTemplate = memoryPrefix + "{+key}"
	auditPrefix    = "pwos:///audit/"
	jsonType       = "application/json"
)

// private marks a result that only this process may see.
var private = sdk.Cacheable{CacheScope: "private"}

func (b *Bridge) addResources() {
	b.server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "memory", URITemplate: memoryTemplate, MIMEType: jsonType,
		Description: "A value in the kernel's memory, by its key, such as " + memoryPrefix + "notes/1.",
	}, b.readMemory)
	b.server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "audit", URITemplate: auditPrefix + "{seq}", MIMEType: jsonType,
		Description: "A call in the kernel's record, by its number: a call of this process or of its descendants.",
	}, b.readAudit)
}

// listResources lists the keys in memory that the process may see.
func (b *Bridge) listResources(ctx context.Context, params *sdk.ListResourcesParams) (sdk.Result, error) {
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: private}
	if !b.isAllowed(schema.MemoryList.Type) {
		return out, nil
	}
	in := &schema.MemoryListInput{}
	if params != nil && params.Cursor != "" {
		in.Cursor = &params.Cursor
	}
	list, err := ask(ctx, b, schema.MemoryList, in)
	if err != nil {
		return nil, refusal(err)
	}
	for _, key := range list.Keys {
		key = strings.TrimPrefix(key, "/")
		out.Resources = append(out.Resources, &sdk.Resource{Name: key, URI: memoryURI(key), MIMEType: jsonType})
	}
	out.NextCursor = list.Next
	return out, nil
}

// complete completes the key of a value in memory. It has no completions for other arguments.
func (b *Bridge) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	out := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}
	ref, argument := req.Params.Ref, req.Params.Argument
	if ref == nil || ref.URI != memoryTemplate || argument.Name != "key" || !b.isAllowed(schema.MemoryList.Type) {
		return out, nil
	}
	prefix, most := argument.Value, int64(100) // the maximum of the protocol
	list, err := ask(ctx, b, schema.MemoryList, &schema.MemoryListInput{Prefix: &prefix, Limit: &most})
	if err != nil {
		return nil, refusal(err)
	}
	for _, key := range list.Keys {
		out.Completion.Values = append(out.Completion.Values, strings.TrimPrefix(key, "/"))
	}
	out.Completion.HasMore = list.Next != ""
	return out, nil
}

// isAllowed reports whether the process may call a syscall, as last reported.
func (b *Bridge) isAllowed(typ string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.may != nil && slices.Contains(b.may.Syscalls, typ)
}

// memoryURI returns the URI of a key, with each segment escaped.
func memoryURI(key string) string {
	segments := strings.Split(key, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return memoryPrefix + strings.Join(segments, "/")
}

func (b *Bridge) readMemory(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	key, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, memoryPrefix))
	if err != nil {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	data, err := schema.MemoryGet.Encode(&schema.MemoryGetInput{Key: key})
	if err != nil {
		return nil, err
	}
	answer, err := b.link.do(ctx, schema.KindQuery, schema.MemoryGet.Type, data)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, refusal(err)
	}
	return contents(req.Params.URI, answer.Data), nil
}

// auditPage is an answer of Audit.Log whose entries are not decoded.
type auditPage struct {
	Entries []schema.Value `json:"entries"`
	Next    schema.Value   `json:"next,omitzero"`
}

func (b *Bridge) readAudit(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	seq, err := strconv.ParseInt(strings.TrimPrefix(req.Params.URI, auditPrefix), 10, 64)
	if err != nil || seq < 1 {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	after, one := seq-1, int64(1)
	data, err := schema.AuditLog.Encode(&schema.AuditLogInput{SinceSeq: &after, Limit: &one})
	if err != nil {
		return nil, err
	}
	answer, err := b.link.do(ctx, schema.KindQuery, schema.AuditLog.Type, data)
	if err != nil {
		return nil, refusal(err)
	}
	list, failure := schema.TypeOf[auditPage]().Decode(answer.Data)
	if failure != nil {
		return nil, failure
	}
	for _, raw := range list.(*auditPage).Entries {
		entry, failure := schema.TypeOf[schema.AuditEntry]().Decode(raw)
		if failure == nil && entry.(*schema.AuditEntry).Seq == seq {
			return contents(req.Params.URI, raw), nil
		}
	}
	return nil, sdk.ResourceNotFoundError(req.Params.URI)
}

func contents(uri string, data schema.Value) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: jsonType, Text: string(data)}}}
}

// codeRefused is the JSON-RPC error code of a refused resource or prompt. Unlike a tool result, their results cannot have an error.
const codeRefused = -32000

// refusal converts err to an MCP error.
func refusal(err error) error {
	text := err.Error()
	if said := client.Answered(err); said != nil {
		text = said.Error()
	}
	return &jsonrpc.Error{Code: codeRefused, Message: text}
}

// ask calls a syscall as the process, and returns its decoded output.
func ask[In, Out any](ctx context.Context, b *Bridge, row schema.Callable[In, Out], in *In) (*Out, error) {
	data, err := row.Encode(in)
	if err != nil {
		return nil, err
	}
	answer, err := b.link.do(ctx, row.Row().Kind, row.Row().Type, data)
	if err != nil {
		return nil, err
	}
	return row.Decode(answer.Data)
}

package mcp

import (
	"cmp"
	"context"
	"path"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/schema"
)

// adopted offers the document that the process has adopted as a prompt.
func (b *Bridge) adopted(ctx context.Context) {
	if !b.isAllowed(schema.ProcessGet.Type) || !b.isAllowed(schema.KernelIngest.Type) {
		return
	}
	b.link.mu.Lock()
	pid := b.link.pid
	b.link.mu.Unlock()
	d, err := ask(ctx, b, schema.ProcessGet, &schema.ProcessGetInput{PID: pid})
	if err == nil && d.Identity != nil {
		b.prompt(d.Identity.URI, d.Identity.Name)
	}
}

// ingested offers the document of an answer of Kernel.Ingest as a prompt.
func (b *Bridge) ingested(reply []byte) {
	if out, err := schema.KernelIngest.Decode(reply); err == nil {
		b.prompt(out.URI, "")
	}
}

// prompt offers a document as a prompt. Each get of the prompt ingests the document and returns its text.
func (b *Bridge) prompt(uri, name string) {
	prompt, _ := schema.ServedName(cmp.Or(name, path.Base(uri)))
	b.mu.Lock()
	known := b.prompts[uri]
	b.prompts[uri] = true
	b.mu.Unlock()
	if known {
		return
	}
	b.server.AddPrompt(&sdk.Prompt{Name: prompt, Title: name, Description: "The document " + uri + "."},
		func(ctx context.Context, _ *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out, err := ask(ctx, b, schema.KernelIngest, &schema.IngestInput{URI: uri})
			if err != nil {
				return nil, refusal(err)
			}
			text := ""
			if out.Content != nil {
				text = *out.Content
			}
			return &sdk.GetPromptResult{Description: uri, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
		})
}

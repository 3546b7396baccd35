package ingest

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// Runner does Kernel.Ingest and FileSystem.Hydrate. Its fields are set before it is used.
type Runner struct {
	Pipeline Pipeline // of every job, but for Web
	Fetcher  *fetch.Runner
}

// pipeline is that of one job: whom it may talk to is its token's matter.
func (r *Runner) pipeline(job *kernel.Job) *Pipeline {
	own := r.Pipeline
	own.Web = r.web(job)
	return &own
}

// Ingest goes through the phases up to Load. Nothing is stored before its outcome is decided.
func (r *Runner) Ingest(ctx context.Context, job *kernel.Job, do *process.Ingest) (*schema.Adoption, error) {
	result, err := r.pipeline(job).Run(ctx, Request{URI: do.URI, Base: do.Base, Integrity: do.Integrity, Now: time.UnixMilli(job.Time)})
	if err != nil {
		return nil, err
	}
	is := result.Identity
	return &schema.Adoption{
		Identity: schema.Identity{
			ContextID: is.ContextID, URI: is.URI, Digest: is.Digest, Name: is.Name, Proof: string(is.Proof), Signer: is.Signer,
		},
		FrontMatter: string(result.Loaded.FrontMatter), Content: result.Loaded.Content,
	}, nil
}

// Hydrate reads what the front matter of a resource lists.
func (r *Runner) Hydrate(ctx context.Context, job *kernel.Job, do *process.Hydrate) (*schema.HydrateOutput, error) {
	now, pipeline := time.UnixMilli(job.Time), r.pipeline(job)
	loaded, err := pipeline.reload(ctx, do, now)
	if err != nil {
		return nil, err
	}
	items, err := pipeline.Hydrate(ctx, loaded, now)
	if err != nil {
		return nil, err
	}
	out := &schema.HydrateOutput{URI: loaded.URI, Skills: []schema.HydratedItem{}, Tools: []schema.HydratedItem{}}
	for _, item := range items {
		list := &out.Skills
		if item.Kind == Tool {
			list = &out.Tools
		}
		if !schema.ValidWithin(item.Input, schema.MaxKeptDepth) {
			item.Input = nil // too deep to be told of, or none
		}
		*list = append(*list, schema.HydratedItem{
			URI: item.URI, Name: item.Name, Description: item.Description, Digest: item.Digest, Input: item.Input,
		})
	}
	return out, nil
}

// reload is the resource that is to be hydrated: as it was adopted, or as it is.
func (p *Pipeline) reload(ctx context.Context, do *process.Hydrate, now time.Time) (*Loaded, error) {
	if do.FrontMatter != "" {
		return p.Recall(do.URI, []byte(do.FrontMatter))
	}
	result, err := p.Run(ctx, Request{URI: do.URI, Base: do.Base, Now: now})
	if err != nil {
		return nil, err
	}
	return result.Loaded, nil
}

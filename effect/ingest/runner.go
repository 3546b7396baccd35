package ingest

import (
	"context"
	"io"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Runner does Kernel.Ingest and FileSystem.Hydrate. Its fields are set before it is used.
type Runner struct {
	Pipeline Pipeline // of every job, except for Web
	Fetcher  *fetch.Runner
}

// pipeline is that of one job: the job's token decides which hosts it may reach.
func (r *Runner) pipeline(job *kernel.Job) *Pipeline {
	own := r.Pipeline
	own.Web = r.web(job)
	return &own
}

// Ingest goes through the phases up to Load. Nothing is stored before its outcome is decided.
func (r *Runner) Ingest(ctx context.Context, job *kernel.Job, do *process.Ingest) (*schema.Adoption, error) {
	loaded, err := r.pipeline(job).Run(ctx, Request{URI: do.URI, Base: do.Base, Integrity: do.Integrity, Now: time.UnixMilli(job.Time)})
	if err != nil {
		return nil, err
	}
	return &schema.Adoption{Identity: loaded.Identity, FrontMatter: string(loaded.FrontMatter), Content: loaded.Content}, nil
}

// Hydrate reads what the front matter of a resource lists.
func (r *Runner) Hydrate(ctx context.Context, job *kernel.Job, do *process.Hydrate) (*schema.HydrateOutput, error) {
	now, pipeline := time.UnixMilli(job.Time), r.pipeline(job)
	loaded, err := pipeline.reload(ctx, do, now)
	if err != nil {
		return nil, err
	}
	return pipeline.Hydrate(ctx, loaded, now)
}

// reload is the resource to hydrate: as it was adopted, or as it is now.
func (p *Pipeline) reload(ctx context.Context, do *process.Hydrate, now time.Time) (*Loaded, error) {
	if do.FrontMatter != "" {
		return p.Recall(do.URI, []byte(do.FrontMatter))
	}
	return p.Run(ctx, Request{URI: do.URI, Base: do.Base, Now: now})
}

// The headers by which servers identify versions of a resource.
const (
	statusOK       = 200
	statusNotFound = 404
	statusGone     = 410
)

// web returns the source for resources of one job: the hosts that its process may fetch from, over
// https: only, without sealed values.
func (r *Runner) web(job *kernel.Job) Web {
	return func(ctx context.Context, address string, most int64) ([]byte, error) {
		policy, denied := r.Fetcher.Policy(job)
		if denied != nil {
			return nil, denied
		}
		policy.PlainHTTP, policy.Open = false, nil
		long := &bounded{most: most}
		resp, err := r.Fetcher.Do(ctx, fetch.Request{URL: address, Policy: policy, Spill: func() (io.Writer, error) { return long, nil }})
		switch {
		case err != nil:
			return nil, err
		case resp.Status == statusNotFound || resp.Status == statusGone:
			return nil, fault.FileNotFound.New("no such resource: the server answered %d", resp.Status)
		case resp.Status != statusOK:
			return nil, fault.HTTPUpstream.New("the server says %d", resp.Status)
		case resp.Spilled:
			return long.data, nil
		}
		return resp.Body, nil
	}
}

// bounded keeps what is written to it, up to a bound.
type bounded struct {
	data []byte
	most int64
}

// Write fails once there is more than may be kept.
func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(b.data)+len(p)) > b.most {
		return 0, tooLarge(b.most)
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

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

// Runner runs Kernel.Ingest and FileSystem.Hydrate. Its fields must be set before use.
type Runner struct {
	Pipeline Pipeline // without Web, which depends on the job
	Fetcher  *fetch.Runner
}

// pipeline returns the pipeline of a job, which may reach the hosts that the job's token allows.
func (r *Runner) pipeline(job *kernel.Job) *Pipeline {
	own := r.Pipeline
	own.Web = r.web(job)
	return &own
}

// Ingest loads a resource, and returns what its process adopts. It stores nothing.
func (r *Runner) Ingest(ctx context.Context, job *kernel.Job, do *process.Ingest) (*schema.Adoption, error) {
	loaded, err := r.pipeline(job).Run(ctx, Request{URI: do.URI, Base: do.Base, Integrity: do.Integrity, Now: time.UnixMilli(job.Time)})
	if err != nil {
		return nil, err
	}
	return &schema.Adoption{Identity: loaded.Identity, FrontMatter: string(loaded.FrontMatter), Content: loaded.Content}, nil
}

// Hydrate returns the skills and tools that the front matter of a resource lists.
func (r *Runner) Hydrate(ctx context.Context, job *kernel.Job, do *process.Hydrate) (*schema.HydrateOutput, error) {
	now, pipeline := time.UnixMilli(job.Time), r.pipeline(job)
	loaded, err := pipeline.reload(ctx, do, now)
	if err != nil {
		return nil, err
	}
	return pipeline.Hydrate(ctx, loaded, now)
}

// reload returns the resource to hydrate: from the adopted front matter if there is one, else freshly loaded.
func (p *Pipeline) reload(ctx context.Context, do *process.Hydrate, now time.Time) (*Loaded, error) {
	if do.FrontMatter != "" {
		return p.Recall(do.URI, []byte(do.FrontMatter))
	}
	return p.Run(ctx, Request{URI: do.URI, Base: do.Base, Now: now})
}

// HTTP statuses of an answer.
const (
	statusOK       = 200
	statusNotFound = 404
	statusGone     = 410
)

// web returns the Web of a job. It reaches the hosts that the process may fetch from, only over https: and
// without sealed values.
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

// bounded is a writer that stores at most most bytes.
type bounded struct {
	data []byte
	most int64
}

// Write implements io.Writer. It fails if there are more than most bytes.
func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(b.data)+len(p)) > b.most {
		return 0, tooLarge(b.most)
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

package ingest

import (
	"context"
	"io"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// What servers say that resources are told apart by.
const (
	statusOK       = 200
	statusNotFound = 404
	statusGone     = 410
)

// web returns where the resources of one job come from: the hosts that its process may fetch from, by https: alone, and nothing
// sealed is opened for it.
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
			return nil, fault.FileNotFound.New("there is nothing of that name: the server says %d", resp.Status)
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

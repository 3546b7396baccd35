package daemon

import (
	"context"
	"fmt"
	"io"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
)

// What servers say that resources are told apart by.
const (
	statusOK       = 200
	statusNotFound = 404
	statusGone     = 410
)

// resources returns where the resources of one job come from: the hosts that its process may fetch from, by https: alone,
// and nothing sealed is opened for it.
func (w *web) resources(job *actors.Job) ingest.Web {
	return func(ctx context.Context, address string, most int64) ([]byte, error) {
		policy, fault := w.policy(job)
		if fault != nil {
			return nil, fault
		}
		policy.PlainHTTP, policy.Open = false, nil
		long := &bounded{most: most}
		r, err := w.fetcher.Do(ctx, fetch.Request{URL: address, Policy: policy, Spill: func() (io.Writer, error) { return long, nil }})
		switch {
		case long.over: // whatever became of the exchange then
			return nil, rootfs.ErrTooLarge
		case err != nil:
			return nil, err
		case r.Status == statusNotFound || r.Status == statusGone:
			return nil, fmt.Errorf("%w: the server says %d", ingest.ErrNotFound, r.Status)
		case r.Status != statusOK:
			return nil, schema.Errorf(schema.Upstream, "the server says %d", r.Status)
		case r.Spilled:
			return long.data, nil
		}
		return r.Body, nil
	}
}

// bounded keeps what is written to it, up to a bound.
type bounded struct {
	data []byte
	most int64
	over bool
}

// Write fails once there is more than may be kept.
func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(b.data)+len(p)) > b.most {
		b.over = true
		return 0, rootfs.ErrTooLarge
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

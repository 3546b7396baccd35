package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// pendingKernel waits for an approval of each call until the caller gives up.
type pendingKernel struct{ Kernel }

func (pendingKernel) Run(ctx context.Context, _ *Requester, _ string, _ int64, _ *schema.Errand) ([]byte, error) {
	<-ctx.Done()
	return nil, fault.ApprovalPending.New("it waits for the approval q-1")
}

// TestRunOutOfTime: the outcome of a call that waited for an approval for as long as a request may take is that it waits, and not that
// the call is in flight, after which the other kernel would make it again.
func TestRunOutOfTime(t *testing.T) {
	r := &receiver{Link: &Link{kernel: pendingKernel{}}, flights: map[string]*flight{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for number := range int64(64) {
		req := &request{From: "alpha", Instance: "i", Errand: &schema.Errand{Number: number, Spawn: &schema.SpawnInput{}}}
		if _, err := r.run(ctx, nil, req); !errors.Is(err, fault.ApprovalPending) {
			t.Fatalf("call %d: %v", number, err)
		}
	}
}

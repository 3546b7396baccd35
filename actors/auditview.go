package actors

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	questions "github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// view is the journal for the audit domain: what was written, and what only the running kernel knows.
type view struct {
	*record.View
	kernel *Kernel
}

var _ questions.Journal = view{}

// newView returns the view of the kernel that cfg configures.
func newView(k *Kernel, cfg *Config) view {
	return view{kernel: k, View: &record.View{
		Files: cfg.FS, Dir: cfg.Dir, Journal: cfg.Journal, Snapshots: cfg.Snapshots, Processes: cfg.Processes,
		Gate: &k.gate, Logger: cfg.Log, Look: k.look,
	}}
}

// look requests the extent of the journal from the actor that appends.
type look struct{ answer chan<- record.Extent }

func (k *Kernel) look(ctx context.Context) (record.Extent, error) {
	answer := make(chan record.Extent, 1)
	k.root.Send(k.audit, look{answer})
	select {
	case extent := <-answer:
		return extent, nil
	case <-ctx.Done():
		return record.Extent{}, ctx.Err()
	}
}

// Metrics and the methods below implement audit.Journal.
func (v view) Metrics(ctx context.Context, call *kernel.Call) (*schema.AuditMetricsOutput, error) {
	if _, err := v.Look(ctx); err != nil { // so that everything appended is counted
		return nil, err
	}
	out := v.kernel.metrics.ShownTo(call.PID, call.Origin)
	if refusal := v.kernel.refusal.Load(); refusal != nil {
		out.Refusing = *refusal
	}
	if v.kernel.warnings != nil && call.PID == kernel.Operator {
		out.Warnings = v.kernel.warnings()
	}
	if v.kernel.away.Load() && call.PID == kernel.Operator {
		out.Warnings = append(out.Warnings, "no majority of the bus acknowledges entries: commands are refused, and this was answered from the kernel's own disk")
	}
	return out, nil
}

func (v view) Record() (instance string, epochs []schema.Epoch) {
	if b := v.kernel.booted; b != nil {
		return b.Instance, b.Epochs
	}
	return "", nil
}

func (v view) Notify() { v.kernel.followed.Store(true) }

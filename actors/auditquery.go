package actors

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// answerAll answers the audit log's own queries. What has to read the journal does so on a goroutine of its own; the
// batch comes back when it is done, to be journaled itself.
func (a *audit) answerAll(ctx actor.Context, b *batch) {
	b.decided = true
	for i := range b.calls {
		call := &b.calls[i]
		begun := time.Now()
		call.Time = begun.UnixMilli()
		if len(a.rebuilding) > 0 {
			call.Err = errNoJournal() // nobody can say who may ask
		} else if err := a.kernel.admit(call); err != nil {
			call.Err = err
		} else if in, ok := call.Input.(*schema.AuditMetricsInput); ok && in != nil {
			out := a.metrics.shownTo(call)
			out.Refusing = a.refusal
			if a.kernel.warnings != nil && call.PID == kernel.Operator {
				out.Warnings = a.kernel.warnings()
			}
			call.Data, call.Err = a.present(schema.Marshal(out))
			b.sender.charge(call)
		} else {
			a.ask(ctx, b, call, begun) // such a call is alone in its batch
			return
		}
		call.Proof.LatencyUS = microseconds(begun)
	}
	a.append(ctx, b)
}

// ask answers a call that reads the journal, as it is now: what is flushed here and the intents without an end belong to
// the same entry.
func (a *audit) ask(ctx actor.Context, b *batch, call *kernel.Call, begun time.Time) {
	self, root := ctx.Self(), a.kernel.root
	a.flush(ctx)
	head, unended := a.journal.Head().Seq, a.kernel.keys.unended()
	a.kernel.asking.Go(func() {
		until, cancel := context.WithCancel(context.Background())
		defer cancel()
		a.kernel.asking.Go(func() {
			select {
			case <-a.kernel.stopping:
				cancel()
			case <-until.Done():
			}
		})
		switch in := call.Input.(type) {
		case *schema.AuditLogInput:
			call.Data, call.Err = a.present(a.search(until, call, in, head, unended))
		case *schema.AuditVerifyInput:
			call.Data, call.Err = a.present(a.verify(until))
		default:
			call.Err = schema.Errorf(schema.Internal, "%s has no meaning", call.Message.Type)
		}
		call.Proof.LatencyUS = microseconds(begun)
		b.sender.charge(call)
		root.Send(self, b)
	})
}

// present makes an outcome of data and err, which its caller learns only so far as it is made for callers.
func (a *audit) present(data []byte, err error) ([]byte, *schema.Error) {
	if err == nil {
		return data, nil
	}
	shown := schema.AsError(err)
	if shown.Kind == schema.Internal {
		a.log.Error("audit query failed", "error", err)
		if _, system := errors.AsType[syscall.Errno](err); system { // it may pass
			return nil, errNoState()
		}
	}
	return nil, shown
}

// verify is what Audit.Verify answers.
func (a *audit) verify(ctx context.Context) ([]byte, error) {
	report, err := journal.Verify(ctx, a.kernel.files, a.kernel.journalDir, journal.VerifyOptions{})
	if err != nil {
		return nil, fmt.Errorf("verify journal: %w", err)
	}
	out := schema.AuditVerifyOutput{OK: report.OK(), Entries: int64(report.Entries), Head: report.Head.Hash.String()}
	if !report.OK() {
		out.Broken = report.Findings[0].Error()
	}
	return schema.Marshal(&out)
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// heldRule is the rule that questions about files name that were set aside, as they are none of the policy's.
const heldRule = "held"

// heldFiles is the data of such a question. Its call is the Step.Undo that puts the files back.
type heldFiles struct {
	Agent string   `json:"agent" keep:"always"`
	Tree  string   `json:"tree" keep:"always"`
	Step  int64    `json:"step" keep:"always"`
	Paths []string `json:"paths" keep:"always"`
	Count int64    `json:"count" keep:"always"`
}

// askHeld asks whether files that were set aside are to be put back, unless the answer is known.
func (d *Daemon) askHeld(ctx context.Context, q *trees.Question) error {
	const tries = 3 // another question may have taken the number
	for range tries {
		now := time.Now().UnixMilli()
		if known, ok := d.state.Approvals.Own(q.Digest, now); ok {
			if known.State == schema.ApprovalApproved {
				d.answered(known.ID)
			}
			return nil
		}
		data, err := schema.Marshal(&heldFiles{q.Agent, q.Tree, q.Step, q.Paths, q.Count})
		if err != nil {
			return fmt.Errorf("encode question: %w", err)
		}
		in := &schema.ApprovalRequestedInput{
			Rule: heldRule, Agent: q.Agent, Origin: d.config.Origin, Type: schema.StepUndo.Row().Type, Data: data, Digest: q.Digest,
			Asked: now, Expires: now + time.Duration(d.config.Steps.Keep).Milliseconds(),
		}
		d.state.Approvals.Name(in)
		if _, err := d.kernel.Do(ctx, kernel.Own{Caller: kernel.Caller{Kernel: true}, Request: schema.ApprovalRequested.With(in)}); err != nil {
			return err
		}
	}
	return errors.New("each time, another question took its number")
}

// answered has the calls that wait for a question decided again, and files put back if it was about such.
func (d *Daemon) answered(id string) {
	d.kernel.Answered(id)
	if a, ok := d.state.Approvals.Named(id); !ok || a.Rule != heldRule || a.PID != kernel.Operator || d.trees == nil {
		return
	}
	d.putting.Go(func() {
		if err := d.putBack(id); err != nil {
			d.log.Warn("files are not put back", "question", id, "error", err)
		}
	})
}

// resumeHeld puts back what was approved when the last kernel ended.
func (d *Daemon) resumeHeld() {
	for _, id := range d.state.Approvals.Granted(heldRule, time.Now().UnixMilli()) {
		d.answered(id)
	}
}

// putBackTime bounds putBack.
const putBackTime = time.Minute

// putBack puts back what was set aside if a question about that is approved.
func (d *Daemon) putBack(id string) error {
	a, ok := d.state.Approvals.Named(id)
	if !ok || a.State != schema.ApprovalApproved {
		return nil
	}
	decoded, bad := schema.TypeOf[heldFiles]().Decode(a.Data)
	if bad != nil {
		return bad
	}
	of := decoded.(*heldFiles)
	ctx, cancel := context.WithTimeout(context.Background(), putBackTime)
	defer cancel()
	_, err := d.kernel.Do(ctx, kernel.Own{Request: schema.StepUndo.With(&schema.StepUndoInput{Agent: of.Agent, Tree: of.Tree, Step: &of.Step, Partial: new(true)})})
	if err != nil || a.Until != 0 {
		return err
	}
	_, err = d.kernel.Do(ctx, kernel.Own{Caller: kernel.Caller{Kernel: true}, Request: schema.ApprovalUse.With(&schema.ApprovalUseInput{ID: id})})
	if errors.Is(err, fault.ApprovalOver) { // it was done at the same time
		return nil
	}
	return err
}

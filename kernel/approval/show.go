package approval

import (
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// list answers Approval.List.
func (d *Domain) list(call *kernel.Call, in *schema.ApprovalListInput) (schema.ApprovalListOutput, error) {
	out, size := schema.ApprovalListOutput{Approvals: []schema.ApprovalState{}}, 0
	after := int64(0)
	if in.After != nil {
		if after = numberOf(*in.After); after == 0 {
			return out, kernel.Invalid("after", "is no id of a question")
		}
	}
	d.all.Ascend(after+1, func(_ int64, a *Approval) bool {
		s := a.ApprovalState
		s.State = d.state(a, call.Time)
		if in.State != nil && s.State != *in.State {
			return true
		}
		if out.More == 0 {
			text, err := schema.Marshal(&s)
			if size += len(text) + 1; err == nil && (size <= kernel.MaxData-100 || len(out.Approvals) == 0) {
				out.Approvals = append(out.Approvals, s)
				return true
			}
		}
		out.More++
		return true
	})
	return out, nil
}

// subscribe answers Approval.Subscribe.
func (d *Domain) subscribe(call *kernel.Call, _ *schema.ApprovalSubscribeInput) (out schema.SuccessOutput, _ error) {
	if call.Message.Meta.IdempotencyKey != "" {
		return out, fault.WireInvalidInput.New(
			"Invalid input: a subscription is its connection's, and cannot be had again from another").WithFix("leave out metadata.idempotencyKey")
	}
	call.Follow(schema.ApprovalWatch.With(&schema.ApprovalWatchInput{Before: d.changes}))
	return schema.SuccessOutput{Success: true}, nil
}

// mostTold bounds the events of one outcome of Approval.Watch.
const mostTold = 64

// watch answers Approval.Watch: the changes since the number in its input.
func (d *Domain) watch(call *kernel.Call, in *schema.ApprovalWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	since := min(in.Since, d.changes) // the journal may have lost some
	type change struct {
		number int64
		typ    string
		a      *Approval
	}
	var changes []change
	d.all.Scan(func(_ int64, a *Approval) bool {
		if a.Raised > since && (a.Raised > in.Before || d.state(a, call.Time) == schema.ApprovalWaiting) {
			asked := *a
			asked.State, asked.Until, asked.Why, asked.Decided, asked.Advisory = schema.ApprovalWaiting, 0, "", nil, false
			changes = append(changes, change{a.Raised, schema.ApprovalHasRequested, &asked})
		}
		if a.Changed > max(since, in.Before) {
			changes = append(changes, change{a.Changed, schema.ApprovalHasDecided, a})
		}
		return true
	})
	if len(changes) == 0 && since == d.changes {
		call.Park(kernel.Forever)
		return out, nil
	}
	slices.SortFunc(changes, func(a, b change) int { return int(a.number - b.number) })
	upTo := d.changes
	if len(changes) > mostTold {
		changes = changes[:mostTold]
		upTo = changes[mostTold-1].number
	}
	for _, c := range changes {
		data, err := schema.Marshal(&c.a.ApprovalState)
		if err != nil {
			panic(fmt.Sprintf("approval: encode %s: %v", c.a.ID, err)) // its values are valid JSON
		}
		call.Emit(kernel.Event{Type: c.typ, Data: data, Causation: c.a.Message})
	}
	call.Follow(schema.ApprovalWatch.With(&schema.ApprovalWatchInput{Since: upTo, Before: in.Before}))
	return out, nil
}

// saved is a record of a snapshot: the numbers, or a approval.
type saved struct {
	Last     int64     `json:"last,omitzero" min:"0"`
	Changes  int64     `json:"changes,omitzero" min:"0"`
	Approval *Approval `json:"approval,omitzero"`
}

var records = kernel.RecordsOf[saved]()

// Snapshot implements kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	all, last, changes := d.all.Copy(), d.last, d.changes
	return records.Writer(func(yield func(saved) bool) {
		if last > 0 && yield(saved{Last: last, Changes: changes}) {
			all.Scan(func(_ int64, a *Approval) bool { return yield(saved{Approval: a}) })
		}
	})
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	return records.Read(chunk, func(s *saved) error {
		if s.Last > 0 {
			d.last, d.changes = s.Last, s.Changes
		}
		if a := s.Approval; a != nil {
			a.Data = slices.Clone(a.Data)
			d.put(a)
		}
		return nil
	})
}

package job

import (
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// show is a job as an answer shows it.
func (j *Job) show() schema.JobState {
	s := schema.JobState{
		JobID: j.Label(), Status: j.Status, Name: j.Name, PID: j.PID, Created: j.Created, Next: j.Next, Every: j.Every,
		Runs: j.Runs, Last: j.Last, Ended: j.Ended,
	}
	if j.Outcome == nil {
		return s
	}
	outcome, err := schema.DecodeOutcome(j.Outcome)
	if err == nil {
		err = outcome.Err
	}
	if err != nil {
		s.Error, s.ErrorID = err.Message, string(err.ID)
	} else {
		s.Result = slices.Clone(outcome.Data)
	}
	return s
}

// status answers Job.Status.
func (d *Domain) status(call *kernel.Call, in *schema.JobInput) (out schema.JobState, _ error) {
	j, err := d.find(call, in.JobID)
	if err != nil {
		return out, err
	}
	return j.show(), nil
}

// list answers Job.List.
func (d *Domain) list(call *kernel.Call, in *schema.JobListInput) (schema.JobListOutput, error) {
	limit := defaultLimit
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	out, size := schema.JobListOutput{Jobs: []schema.JobState{}}, 0
	d.jobs.Reverse(func(_ int64, j *Job) bool {
		if !mayKnow(call, j) || in.Status != nil && j.Status != *in.Status || in.Since != nil && j.Created < *in.Since {
			return true
		}
		s := j.show()
		s.Result = nil
		text, err := schema.Marshal(&s)
		if size += len(text) + 1; err != nil || size > kernel.MaxData-20 {
			return false
		}
		out.Jobs = append(out.Jobs, s)
		return len(out.Jobs) < limit
	})
	slices.Reverse(out.Jobs)
	return out, nil
}

// subscribe answers Job.Subscribe.
func (d *Domain) subscribe(call *kernel.Call, _ *schema.JobSubscribeInput) (out schema.SuccessOutput, _ error) {
	if call.Message.Meta.IdempotencyKey != "" {
		return out, fault.WireInvalidInput.New(
			"Invalid input: a subscription is its connection's, and cannot be had again from another").WithFix("leave out metadata.idempotencyKey")
	}
	call.Follow(schema.JobWatch.With(&schema.JobWatchInput{Since: d.changes}))
	return schema.SuccessOutput{Success: true}, nil
}

// watch answers Job.Watch: the changes since the number in its input.
func (d *Domain) watch(call *kernel.Call, in *schema.JobWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	since := min(in.Since, d.changes) // the journal may have lost some
	var changed []*Job
	d.jobs.Scan(func(_ int64, j *Job) bool {
		if j.Changed > since && mayKnow(call, j) && j.Runs+j.Ended > 0 {
			changed = append(changed, j)
		}
		return true
	})
	if len(changed) == 0 && since == d.changes {
		call.Park(kernel.Forever)
		return out, nil
	}
	slices.SortFunc(changed, func(a, b *Job) int { return int(a.Changed - b.Changed) })
	for _, j := range changed {
		if j.Begun > since {
			began := *j
			began.Status, began.Outcome, began.Ended, began.Next = schema.JobRunning, nil, 0, 0
			emit(call, schema.JobStarted, &began)
		}
		if j.Changed > j.Begun {
			how, typ := j.Status, schema.JobHasFailed
			if how == schema.JobPending {
				how = j.Last
			}
			if how == schema.JobCompleted {
				typ = schema.JobHasCompleted
			}
			emit(call, typ, j)
		}
	}
	call.Follow(schema.JobWatch.With(&schema.JobWatchInput{Since: d.changes}))
	return out, nil
}

func emit(call *kernel.Call, typ string, j *Job) {
	s := j.show()
	data, err := schema.Marshal(&s)
	if err != nil {
		panic(fmt.Sprintf("job: encode %s: %v", j.Label(), err)) // its values are valid JSON
	}
	call.Emit(kernel.Event{Type: typ, Data: data, Causation: j.Message, Correlation: j.Correlation})
}

// saved is a record of a snapshot: the numbers, or a job.
type saved struct {
	Last    int64 `json:"last,omitzero" min:"0"`
	Changes int64 `json:"changes,omitzero" min:"0"`
	Job     *Job  `json:"job,omitzero"`
}

var records = kernel.RecordsOf[saved]()

// Snapshot implements kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	jobs, last, changes := d.jobs.Copy(), d.last, d.changes
	return records.Writer(func(yield func(saved) bool) {
		if last > 0 && yield(saved{Last: last, Changes: changes}) {
			jobs.Scan(func(_ int64, j *Job) bool { return yield(saved{Job: j}) })
		}
	})
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	return records.Read(chunk, func(s *saved) error {
		if s.Last > 0 {
			d.last, d.changes = s.Last, s.Changes
		}
		if j := s.Job; j != nil {
			j.Payload, j.Outcome = slices.Clone(j.Payload), slices.Clone(j.Outcome)
			d.store(j)
		}
		return nil
	})
}

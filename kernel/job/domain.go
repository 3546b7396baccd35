// Package job keeps calls that are made in the background (PROTOCOL 11, Jobs; EVENT 10.4). It has what is called, when
// it is due, and its outcome. The shell makes the calls: it sees the jobs by a view, reports when a run begins and ends,
// and after a crash repeats an interrupted call under the same idempotency key.
package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds.
const (
	MaxEach        = 100       // active jobs of an agent, and as many that have ended
	MaxOperator    = 1_000     // the same of the operator
	MaxPayload     = 16 << 10  // bytes
	MaxResult      = 12_000    // bytes of a result that is kept
	defaultLimit   = 100       // of a list
	defaultTimeout = 600_000   // milliseconds of a run
	maxTime        = 1<<53 - 1 // what every client can represent
)

// Job is a job in the state. It is immutable.
type Job struct {
	ID          int64        `json:"id" min:"1"`
	Origin      string       `json:"origin"`
	PID         int64        `json:"pid" min:"0"`
	Name        string       `json:"name"`
	Payload     schema.Value `json:"payload,omitzero"`
	Timeout     int64        `json:"timeout"` // milliseconds
	Every       int64        `json:"every,omitzero"`
	Created     int64        `json:"created"`
	Next        int64        `json:"next,omitzero"`
	Status      string       `json:"status"`
	Runs        int64        `json:"runs,omitzero"`
	Last        string       `json:"last,omitzero"`
	Ended       int64        `json:"ended,omitzero"`
	Outcome     schema.Value `json:"outcome,omitzero"` // in the form of a journal entry's
	Message     string       `json:"message,omitzero"` // id of the message that started it
	Correlation string       `json:"correlation,omitzero"`
	Begun       int64        `json:"begun,omitzero"`   // number of the change that began the last run
	Changed     int64        `json:"changed,omitzero"` // number of the last change
}

// nameOf is the name of the job with that number.
func nameOf(id int64) string { return "job-" + strconv.FormatInt(id, 10) }

// Key is the idempotency key of a run.
func (j *Job) Key() string {
	return "job:" + strconv.FormatInt(j.ID, 10) + ":" + strconv.FormatInt(j.Runs, 10)
}

// Label is how clients name the job.
func (j *Job) Label() string { return nameOf(j.ID) }

// active reports whether j is waiting to run, or runs.
func (j *Job) active() bool { return j.Status == schema.JobPending || j.Status == schema.JobRunning }

// due is when a job runs first: at once, unless a later time is given.
func due(in *schema.JobStartInput, now int64) int64 {
	if in.At == nil {
		return now
	}
	return max(*in.At, now)
}

// after is when a periodic job is due after a run that ended at now: its next time. Missed times are skipped.
func (j *Job) after(now int64) int64 {
	next := j.Next + j.Every
	if next <= now {
		next += ((now-next)/j.Every + 1) * j.Every
	}
	return min(next, maxTime)
}

// Domain answers the syscalls of schema.Job.
type Domain struct {
	kernel.Handlers
	registry kernel.Registry

	jobs    *btree.Map[int64, *Job] // immutable ones; by number
	last    int64                   // number of the last job
	changes int64                   // number of the last change
	counts  map[int64]*count        // by process

	view    atomic.Pointer[btree.Map[int64, *Job]]
	changed chan struct{} // buffered: one signal
	dirty   bool          // the view is older than the state
}

// count is the number of jobs of a process.
type count struct{ active, ended int }

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
)

// New returns a domain without jobs. registry finds registered syscalls that can be called.
func New(registry kernel.Registry) *Domain {
	d := &Domain{registry: registry, changed: make(chan struct{}, 1)}
	d.Handlers = kernel.Bind(schema.Job,
		kernel.Command(schema.JobStart, d.start, d.applyStart),
		kernel.Query(schema.JobStatus, d.status),
		kernel.Command(schema.JobCancel, d.cancel, d.applyCancel),
		kernel.Query(schema.JobList, d.list),
		kernel.Command(schema.JobSubscribe, d.subscribe, nil),
		kernel.Question(schema.JobWatch, d.watch),
		kernel.Step(schema.JobBegin, d.begin, d.applyBegin),
		kernel.Step(schema.JobEnd, d.end, d.applyEnd),
	)
	d.Reset()
	return d
}

// start answers Job.Start.
func (d *Domain) start(call *kernel.Call, in *schema.JobStartInput) (out schema.JobStartOutput, _ error) {
	if err := d.callable(call, in); err != nil {
		return out, err
	}
	most := most(call.PID)
	if c := d.counts[call.PID]; c != nil && c.active >= most {
		return out, fault.JobTooMany.New("%d jobs of pid %d are pending, which is the limit", most, call.PID).
			WithFix("wait until some have ended, or cancel some: Job.List")
	}
	return schema.JobStartOutput{JobID: nameOf(d.last + 1), Status: schema.JobPending}, nil
}

// callable refuses a call that no job can make, as far as that is known now. Whether the caller may
// make it is checked at each run.
func (d *Domain) callable(call *kernel.Call, in *schema.JobStartInput) *fault.Fault {
	switch row, ok := schema.Lookup(in.Name); {
	case len(in.Payload) > MaxPayload:
		return kernel.Invalid("payload", "is too long: it may have %d bytes", MaxPayload)
	case strings.Contains(in.Name, "/"):
		return nil // the path is checked when it is called
	case !ok && (d.registry == nil || d.registry.Registered(call.Origin, in.Name) == nil):
		return kernel.Invalid("name", "is no syscall: Syscall.List names what there is")
	case !ok:
		return nil
	case !row.Callable(), row.Domain == schema.Job, row.Barrier, row == schema.SyscallComplete.Syscall, row == schema.SyscallProgress.Syscall, strings.HasSuffix(row.Type, ".Subscribe"):
		return kernel.Invalid("name", "is %s, which cannot be called by a job: it is about its own connection", row.Type)
	default:
		data := cmp.Or(string(in.Payload), "{}")
		input, err := row.Input().Decode([]byte(data))
		if err != nil {
			return kernel.Invalid("payload", "is not what %s takes: %s", row.Type, strings.TrimPrefix(err.Message, "Invalid input: "))
		}
		if string(row.Input().Redact([]byte(data), input, true)) != data {
			return kernel.Invalid("payload", "has a part that the journal never keeps, and so no job can")
		}
		return nil
	}
}

func (d *Domain) applyStart(e *kernel.Entry, in *schema.JobStartInput) {
	d.last++
	j := &Job{
		ID: d.last, Origin: e.Origin, PID: e.PID, Name: in.Name, Payload: slices.Clone(in.Payload), Timeout: defaultTimeout,
		Created: e.Time, Next: due(in, e.Time), Status: schema.JobPending, Message: e.Meta.ID, Correlation: e.Meta.Correlation,
	}
	if in.Timeout != nil {
		j.Timeout = *in.Timeout
	}
	if in.Every != nil {
		j.Every = *in.Every
	}
	d.put(j)
}

// put replaces a job by j.
func (d *Domain) put(j *Job) {
	d.changes++
	j.Changed = d.changes
	d.store(j)
}

// store is put without counting a change.
func (d *Domain) store(j *Job) {
	old, _ := d.jobs.Set(j.ID, j)
	d.tally(old, -1)
	d.tally(j, 1)
	d.dirty = true
}

func (d *Domain) drop(j *Job) {
	d.jobs.Delete(j.ID)
	d.tally(j, -1)
	d.dirty = true
}

func (d *Domain) tally(j *Job, n int) {
	if j == nil {
		return
	}
	c := d.counts[j.PID]
	if c == nil {
		c = new(count)
		d.counts[j.PID] = c
	}
	if j.active() {
		c.active += n
	} else {
		c.ended += n
	}
	if *c == (count{}) {
		delete(d.counts, j.PID)
	}
}

// most bounds the active jobs of a process, and as many ended ones.
func most(pid int64) int {
	if pid == kernel.Operator {
		return MaxOperator
	}
	return MaxEach
}

// ended stores j, which has ended, and drops the oldest ended jobs of its process if there are too many.
func (d *Domain) ended(j *Job) {
	d.put(j)
	if d.counts[j.PID].ended <= most(j.PID) {
		return
	}
	d.jobs.Scan(func(_ int64, old *Job) bool {
		if old.PID != j.PID || old.active() {
			return true
		}
		d.drop(old)
		return false
	})
}

// find is the job that a call names: of its own process, or for the operator any of its origin.
func (d *Domain) find(call *kernel.Call, label string) (*Job, *fault.Fault) {
	if j, ok := d.labelled(label); ok && mayKnow(call, j) {
		return j, nil
	}
	return nil, fault.JobNotFound.New("there is no such job, or it is forgotten: Job.List names those that there are")
}

func mayKnow(call *kernel.Call, j *Job) bool {
	return j.Origin == call.Origin && (j.PID == call.PID || call.PID == kernel.Operator)
}

// cancel answers Job.Cancel.
func (d *Domain) cancel(call *kernel.Call, in *schema.JobInput) (out schema.JobCancelOutput, _ error) {
	j, err := d.find(call, in.JobID)
	if err != nil {
		return out, err
	}
	return schema.JobCancelOutput{JobID: j.Label(), Canceled: j.active()}, nil
}

func (d *Domain) applyCancel(e *kernel.Entry, in *schema.JobInput) {
	out := kernel.Reply[schema.JobCancelOutput](e, schema.JobCancel.Output())
	if !out.Canceled {
		return
	}
	if old, ok := d.labelled(in.JobID); ok {
		j := *old
		j.Status, j.Next, j.Ended = schema.JobCancelled, 0, e.Time
		d.ended(&j)
	}
}

// begin answers Job.Begin. The job may have been cancelled since, and its process may have ended.
func (d *Domain) begin(call *kernel.Call, in *schema.JobBeginInput) (out schema.SuccessOutput, _ error) {
	j, ok := d.labelled(in.JobID)
	if !ok || j.Status != schema.JobPending || j.Next > call.Time {
		return out, fault.JobNotFound.New("%s is not due", in.JobID)
	}
	return schema.SuccessOutput{Success: true}, nil
}

// labelled is the job with that name.
func (d *Domain) labelled(label string) (*Job, bool) {
	id, _ := strconv.ParseInt(strings.TrimPrefix(label, "job-"), 10, 64)
	j, ok := d.jobs.Get(id)
	return j, ok && j.Label() == label
}

func (d *Domain) applyBegin(_ *kernel.Entry, in *schema.JobBeginInput) {
	if old, ok := d.labelled(in.JobID); ok {
		j := *old
		j.Status = schema.JobRunning
		j.Runs++
		j.Begun = d.changes + 1
		d.put(&j)
	}
}

// end answers Job.End, which comes too late if the job was cancelled.
func (d *Domain) end(*kernel.Call, *schema.JobEndInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyEnd(e *kernel.Entry, in *schema.JobEndInput) {
	old, ok := d.labelled(in.JobID)
	if !ok || !old.active() || old.Runs != in.Run {
		return
	}
	j := *old
	j.Outcome, j.Ended = slices.Clone(in.Outcome), e.Time
	how := schema.JobCompleted
	if outcome, err := schema.DecodeOutcome(in.Outcome); err != nil || outcome.Err != nil {
		if how = schema.JobFailed; err == nil && outcome.Err.ID == fault.KernelInterrupted {
			how = schema.JobUnknown
		}
	}
	if j.Every > 0 && old.Status == schema.JobRunning {
		j.Last, j.Status, j.Next = how, schema.JobPending, j.after(e.Time)
		d.put(&j)
		return
	}
	j.Status, j.Next = how, 0
	d.ended(&j)
}

// Reset forgets all jobs.
func (d *Domain) Reset() {
	d.jobs, d.last, d.changes, d.counts, d.dirty = new(btree.Map[int64, *Job]), 0, 0, make(map[int64]*count), true
}

// Publish implements kernel.Publisher.
func (d *Domain) Publish() {
	if !d.dirty {
		return
	}
	d.dirty = false
	d.view.Store(d.jobs.Copy())
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// Changed receives a value when jobs have changed since the last one. It has one reader.
func (d *Domain) Changed() <-chan struct{} { return d.changed }

// Active returns the jobs that are waiting to run or run, by due time. They must not be changed.
func (d *Domain) Active() []*Job {
	jobs := d.view.Load()
	if jobs == nil {
		return nil
	}
	var list []*Job
	jobs.Scan(func(_ int64, j *Job) bool {
		if j.active() {
			list = append(list, j)
		}
		return true
	})
	slices.SortStableFunc(list, func(a, b *Job) int { return cmp.Compare(a.Next, b.Next) })
	return list
}

package schema

// Job is the domain of background calls (PROTOCOL 11, Jobs; EVENT 10.4).
const Job Domain = "job"

// The syscalls of this file.
var (
	JobStart = NewCommand[JobStartInput, JobStartOutput](Syscall{
		Type: "Job.Start", Domain: Job,
		Script:      "scripts/job.txtar",
		Description: "Makes a call off this connection, now or later, once or periodically, with the capabilities that the caller has when it runs.",
	})

	JobStatus = NewQuery[JobInput, JobState](Syscall{
		Type: "Job.Status", Domain: Job,
		Script:      "scripts/job.txtar",
		Description: "Returns the state and outcome of one of the caller's jobs; the operator may ask for any.",
	})

	JobCancel = NewCommand[JobInput, JobCancelOutput](Syscall{
		Type: "Job.Cancel", Domain: Job,
		Script:      "scripts/job.txtar",
		Description: "Ends a job: a waiting one is not run, a running one is stopped. Effects of its call stay.",
	})

	JobList = NewQuery[JobListInput, JobListOutput](Syscall{
		Type: "Job.List", Domain: Job,
		Script:      "scripts/job.txtar",
		Description: "Lists the caller's jobs, oldest first; for the operator, all of its origin.",
	})

	JobSubscribe = NewCommand[JobSubscribeInput, SuccessOutput](Syscall{
		Type: "Job.Subscribe", Domain: Job,
		Script:      "scripts/job.txtar",
		Description: "Pushes the beginnings and ends of the caller's jobs on this connection until it closes, as events Job.Started, Job.Completed and Job.Failed.",
	})

	JobWatch = NewQuestion[JobWatchInput, SuccessOutput](Syscall{
		Type: "Job.Watch", Domain: Job,
		Description: "Finds the jobs that have begun or ended since the last push to a subscriber.",
	})

	JobBegin = NewStep[JobBeginInput, SuccessOutput](Syscall{
		Type: "Job.Begin", Domain: Job,
		Description: "Begins a run of a job that is due.",
	})

	JobEnd = NewStep[JobEndInput, SuccessOutput](Syscall{
		Type: "Job.End", Domain: Job,
		Description: "Ends a run of a job: records the outcome of its call.",
	})
)

// States of a job.
const (
	JobPending   = "pending"
	JobRunning   = "running"
	JobCompleted = "completed"
	JobFailed    = "failed"
	JobCancelled = "canceled" // as EVENT 10.4 spells it
	JobUnknown   = "unknown"  // the kernel stopped during an effect
)

// The events of Job.Subscribe. Their data is a JobState.
const (
	JobStarted      = "Job.Started"
	JobHasCompleted = "Job.Completed"
	JobHasFailed    = "Job.Failed"
)

// JobStartInput is the data of Job.Start.
type JobStartInput struct {
	Target
	Name    string `json:"name" keep:"always" minlen:"1" maxlen:"2048" doc:"What is called: a syscall such as Http.Fetch, a registered one, or the path of one in user space such as mcp/fs/read."`
	Payload Value  `json:"payload,omitzero" keep:"applied" doc:"Data of the call. For a path: its arguments, a list or one value. Default: no data."`
	Timeout *int64 `json:"timeout,omitzero" keep:"always" min:"1" max:"86400000" doc:"Milliseconds that a run may take. Default: 600000, ten minutes."`
	At      *int64 `json:"at,omitzero" keep:"always" min:"0" max:"253402300799999" doc:"When it is run first, in Unix milliseconds. Default, or in the past: at once."`
	Every   *int64 `json:"every,omitzero" keep:"always" min:"1000" max:"31536000000" doc:"Milliseconds from one run to the next, until it is cancelled. Default: it is run once."`
}

// JobStartOutput is the answer of Job.Start.
type JobStartOutput struct {
	JobID  string `json:"jobId" keep:"always" doc:"The job."`
	Status string `json:"status" keep:"always" doc:"Always pending."`
}

// JobInput names a job.
type JobInput struct {
	Target
	JobID string `json:"jobId" keep:"always" minlen:"1" maxlen:"64" doc:"The job, as Job.Start named it."`
}

// JobCancelOutput is the answer of Job.Cancel.
type JobCancelOutput struct {
	JobID    string `json:"jobId" keep:"always" doc:"The job."`
	Canceled bool   `json:"canceled" keep:"always" doc:"Whether this call ended it: false if it had ended before."`
}

// JobListInput is the data of Job.List.
type JobListInput struct {
	Target
	Status *string `json:"status,omitzero" keep:"always" enum:"pending running completed failed canceled unknown" doc:"Only jobs in this state."`
	Since  *int64  `json:"since,omitzero" keep:"always" min:"0" doc:"Only jobs that were started at that time or later, in Unix milliseconds."`
	Limit  *int64  `json:"limit,omitzero" keep:"always" min:"1" max:"1000" doc:"Most jobs that are listed, the last ones. Default: 100; fewer if they fill an answer."`
}

// JobListOutput is the answer of Job.List.
type JobListOutput struct {
	Jobs []JobState `json:"jobs" keep:"always" doc:"The jobs, oldest first, without their results."`
}

// JobSubscribeInput is the data of Job.Subscribe.
type JobSubscribeInput struct{ Target }

// JobState is the state of a job.
type JobState struct {
	JobID   string `json:"jobId" keep:"always" doc:"The job."`
	Status  string `json:"status" keep:"always" doc:"pending: it waits for its time or its turn. running. completed: its call succeeded. failed. canceled. unknown: the kernel stopped while an effect of it was in flight. The last run of a periodic job is in last."`
	Name    string `json:"name" keep:"always" doc:"What is called."`
	PID     int64  `json:"pid" keep:"always" doc:"Process that it is called as."`
	Created int64  `json:"created" keep:"always" doc:"When it was started, in Unix milliseconds."`
	Next    int64  `json:"next,omitzero" keep:"always" doc:"When it is due, in Unix milliseconds."`
	Every   int64  `json:"every,omitzero" keep:"always" doc:"Milliseconds from one run to the next."`
	Runs    int64  `json:"runs" keep:"always" doc:"How often it was begun."`
	Last    string `json:"last,omitzero" keep:"always" doc:"How the last run of a job with a period ended: completed, failed or unknown."`
	Ended   int64  `json:"ended,omitzero" keep:"always" doc:"When the last run ended, in Unix milliseconds."`
	Result  Value  `json:"result,omitzero" keep:"always" doc:"What the call was answered."`
	Error   string `json:"error,omitzero" keep:"always" doc:"Why it failed."`
	ErrorID string `json:"errorId,omitzero" keep:"always" doc:"Identifier of that error, as docs/errors.md lists them, such as http.forbidden."`
}

// JobWatchInput is the data of the kernel's own Job.Watch.
type JobWatchInput struct {
	Since int64 `json:"since" keep:"always" doc:"Number of the last change that was pushed."`
}

// JobBeginInput is the data of the kernel's own Job.Begin.
type JobBeginInput struct {
	JobID string `json:"job_id" keep:"always" doc:"The job."`
}

// JobEndInput is the data of the kernel's own Job.End.
type JobEndInput struct {
	JobID   string `json:"job_id" keep:"always" doc:"The job."`
	Run     int64  `json:"run" keep:"always" doc:"Which run of it."`
	Outcome Value  `json:"outcome" keep:"always" doc:"Its outcome, in the form of an entry's outcome."`
}

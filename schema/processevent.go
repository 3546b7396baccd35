package schema

// Events of a process's life, as Process.Subscribe has them pushed. The data of each is the process's descriptor after it.
const (
	ProcessSpawned    = "Process.Spawned"    // there is a new process
	ProcessStarted    = "Process.Started"    // its program runs
	ProcessRestarted  = "Process.Restarted"  // its program runs again
	ProcessExited     = "Process.Exited"     // nothing of its program is left; exit says how it ended
	ProcessBlocked    = "Process.Blocked"    // it is in quarantine until blocked_until_tick
	ProcessTerminated = "Process.Terminated" // it has ended, whatever is left of its program
	ProcessLagged     = "Process.Lagged"     // the data is a ProcessLag: events were missed
)

// ProcessSubscribeInput is the data of Process.Subscribe.
type ProcessSubscribeInput struct {
	PID *int64 `json:"pid,omitzero" keep:"always" min:"1" doc:"Process to follow, with its descendants: an agent itself or one of them. Default: the caller; of the operator, all."`
}

// ProcessSubscribeOutput is what Process.Subscribe answers.
type ProcessSubscribeOutput struct {
	PID int64 `json:"pid" keep:"always" doc:"Process that is followed with its descendants; 0: all are."`
}

// ProcessWatchInput is the data of the kernel's own Process.Watch.
type ProcessWatchInput struct {
	PID   int64 `json:"pid" keep:"always" doc:"Process that is followed with its descendants; 0: all are."`
	After int64 `json:"after" keep:"always" doc:"Events that were seen or passed over."`
}

// ProcessLag is the data of Process.Lagged: the follower reads too slowly, and how things stand now is for Process.List to
// tell.
type ProcessLag struct {
	Missed int64 `json:"missed" keep:"always" doc:"Events that were passed over, other processes' among them."`
}

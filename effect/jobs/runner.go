// Package jobs makes the calls of jobs when they are due (PROTOCOL 11, Jobs). The state of a job, and its outcome,
// belong to kernel/job. After a restart the kernel continues a running job with the same idempotency key: completed
// calls do not run again, and the outcome of an interrupted effect is unknown.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/job"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Maximum numbers of concurrent runs.
const (
	MaxEach = 16 // of one process
	MaxAll  = 64
)

// pause is the delay before a retry of a call that the kernel has refused, for example because of a full disk.
const pause = time.Second

// Kernel makes the calls.
type Kernel interface {
	// Do returns when the call is answered, a command on disk. The end of ctx has the effect of a disconnect.
	Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
}

// Runner makes the calls.
type Runner struct {
	Jobs      *job.Domain
	Kernel    Kernel
	Processes kernel.Processes
	Registry  kernel.Registry
	// OpenVariables opens the variables of a program's environment that the kernel has sealed in a payload. nil: none are.
	OpenVariables func(env map[string]string) (map[string]string, error)
	Log           *slog.Logger

	ending context.Context
	end    context.CancelFunc
	alive  sync.WaitGroup

	mu      sync.Mutex
	running map[int64]*run // by job
	ended   chan struct{}  // a run has ended: another may begin; takes one
}

// run is a run of a job in this kernel.
type run struct {
	pid    int64
	cancel context.CancelFunc
}

// Start starts the Runner.
func (r *Runner) Start() {
	r.ending, r.end = context.WithCancel(context.Background())
	r.running, r.ended = make(map[int64]*run), make(chan struct{}, 1)
	r.alive.Go(r.watch)
}

// Close cancels the calls in flight and waits for their end. Their jobs continue with the next kernel. It does nothing
// for a Runner that was not started, or is nil.
func (r *Runner) Close() {
	if r == nil || r.end == nil {
		return
	}
	r.end()
	r.alive.Wait()
}

// watch calls look when jobs change, and when one is due.
func (r *Runner) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ending.Done():
			return
		case <-r.Jobs.Changed():
		case <-r.ended:
		case <-timer.C:
		}
		if next := r.look(time.Now()); next > 0 {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// look begins runs that are due, and stops runs of cancelled jobs. It returns the time until the next run is due; 0:
// none is.
func (r *Runner) look(now time.Time) (next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := make(map[int64]bool)
	each, agents := make(map[int64]int), 0
	for _, one := range r.running {
		if each[one.pid]++; one.pid != kernel.Operator {
			agents++
		}
	}
	for _, j := range r.Jobs.Active() {
		wanted[j.ID] = true
		wait := time.UnixMilli(j.Next).Sub(now)
		switch {
		case r.running[j.ID] != nil:
		case j.Status == schema.JobPending && wait > 0 && r.lives(j.PID):
			if next == 0 || wait < next {
				next = wait
			}
		case each[j.PID] < MaxEach && (j.PID == kernel.Operator || agents < MaxAll):
			if each[j.PID]++; j.PID != kernel.Operator {
				agents++
			}
			r.begin(j)
		}
	}
	for id, one := range r.running {
		if !wanted[id] {
			one.cancel()
		}
	}
	return next
}

// lives reports whether a process can still make calls.
func (r *Runner) lives(pid int64) bool {
	if pid == kernel.Operator {
		return true
	}
	p := r.Processes.Process(pid)
	return p != nil && p.ExitTick == nil
}

// begin makes the run of j on a goroutine of its own.
func (r *Runner) begin(j *job.Job) {
	ctx, cancel := context.WithCancel(r.ending)
	r.running[j.ID] = &run{j.PID, cancel}
	r.alive.Go(func() {
		defer cancel()
		if err := r.run(ctx, *j); err != nil {
			r.Log.Warn("job is tried again", "job", j.Label(), "error", err)
			select {
			case <-time.After(pause):
			case <-r.ending.Done():
			}
		}
		r.mu.Lock()
		delete(r.running, j.ID)
		r.mu.Unlock()
		select {
		case r.ended <- struct{}{}:
		default:
		}
	})
}

// run makes one run: its beginning, its call and its end, each of which is on disk before the next. It returns an error
// if the run has to be retried.
func (r *Runner) run(ctx context.Context, j job.Job) error {
	if !r.lives(j.PID) {
		return r.over(ctx, &j, nil, fault.JobNoProcess.New("pid %d, which started %s, has ended", j.PID, j.Label()))
	}
	if j.Status == schema.JobPending {
		switch err := r.note(&j, schema.JobBegin.With(&schema.JobBeginInput{JobID: j.Label()})); {
		case errors.Is(err, fault.JobNotFound): // it was cancelled
			return nil
		case err != nil:
			return fmt.Errorf("begin: %w", err)
		}
		j.Runs++
	}
	message, err := r.message(&j)
	if err != nil {
		return r.over(ctx, &j, nil, err)
	}
	limited, stop := context.WithTimeout(ctx, time.Duration(j.Timeout)*time.Millisecond)
	defer stop()
	caller := kernel.Caller{PID: j.PID, Via: "job", Conn: fmt.Sprintf("%s-%d", j.Label(), j.Runs), Origin: j.Origin}
	answer, failed := r.Kernel.Do(limited, kernel.Own{Caller: caller, Message: message})
	data := answer.Data
	switch {
	case ctx.Err() != nil: // cancelled, or the kernel ends
		return nil
	case failed != nil && limited.Err() != nil:
		failed = fault.JobTimeout.New("%s did not end within %d ms", j.Name, j.Timeout)
	case failed == nil && len(data) > job.MaxResult:
		failed = fault.JobLongResult.New("%s was done, and answered %d bytes: a job keeps %d at most", j.Name, len(data), job.MaxResult)
	}
	return r.over(ctx, &j, redacted(&message, data), failed)
}

// note journals a command of the kernel about a job; it is on disk when note returns, also if the job was cancelled meanwhile.
func (r *Runner) note(j *job.Job, command schema.Request) error {
	_, err := r.Kernel.Do(context.Background(), kernel.Own{
		Caller: kernel.Caller{Kernel: true}, Request: command, Causation: j.Message, Correlation: j.Correlation,
	})
	return err
}

// redacted returns a result as the journal may store it.
func redacted(message *schema.Message, data []byte) []byte {
	if row, ok := schema.Lookup(message.Type); ok && data != nil {
		return row.Output().Redact(data, nil, false)
	}
	return data
}

// over records the end of a run.
func (r *Runner) over(ctx context.Context, j *job.Job, data []byte, failed error) error {
	outcome := schema.Outcome{Data: data}
	if failed != nil {
		outcome = schema.Outcome{Err: fault.Of(failed)}
	}
	end := schema.JobEnd.With(&schema.JobEndInput{JobID: j.Label(), Run: j.Runs, Outcome: schema.AppendOutcome(nil, schema.KindCommand, &outcome)})
	for {
		err := r.note(j, end)
		if err == nil {
			return nil
		}
		r.Log.Warn("end of a job is journaled again", "job", j.Label(), "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// message is the call of j.
func (r *Runner) message(j *job.Job) (schema.Message, *fault.Fault) {
	m := schema.Message{Kind: schema.KindCommand, Type: j.Name, Data: j.Payload, Meta: schema.Metadata{
		IdempotencyKey: j.Key(), Causation: j.Message, Correlation: j.Correlation,
	}}
	if m.Data == nil {
		m.Data = []byte("{}")
	}
	if strings.Contains(j.Name, "/") {
		in := schema.CallInput{Syscall: j.Name}
		if len(j.Payload) > 0 && j.Payload[0] == '[' {
			jsontype.Elements(j.Payload, func(value []byte) bool {
				in.Args = append(in.Args, value)
				return true
			})
		} else if j.Payload != nil {
			in.Args = []schema.Value{j.Payload}
		}
		data, err := schema.Marshal(&in)
		if err != nil {
			return m, fault.Of(err)
		}
		m.Type, m.Data = schema.CallType, data
		return m, nil
	}
	if row, ok := schema.Lookup(j.Name); ok {
		m.Type, m.Kind = row.Type, row.Kind
		if row == schema.SyscallSpawn.Row() && r.OpenVariables != nil {
			var err error
			if m.Data, err = r.opened(m.Data); err != nil {
				return m, fault.Of(err)
			}
		}
	} else if one := r.Registry.Registered(j.Origin, j.Name); one != nil && one.Kind == schema.KindQuery.String() {
		m.Kind = schema.KindQuery
	}
	if m.Kind == schema.KindQuery {
		m.Meta.IdempotencyKey = ""
	}
	return m, nil
}

// opened returns the data of a Syscall.Spawn with its variables opened. The kernel seals those of a call itself.
func (r *Runner) opened(data schema.Value) (schema.Value, error) {
	in, invalid := schema.SyscallSpawn.Input().Decode(data)
	if invalid != nil {
		return nil, invalid
	}
	spawn := in.(*schema.SpawnInput)
	var err error
	if spawn.Env, err = r.OpenVariables(spawn.Env); err != nil {
		return nil, err
	}
	return schema.Marshal(spawn)
}
